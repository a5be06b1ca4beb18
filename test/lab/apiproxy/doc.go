// Package apiproxy stands between a program and a real API server, and lets tests
// do what networks and API servers do: refuse connections, cut those that there
// are, fall silent, answer some requests with an error, or be slow to tell that they
// have done what was asked. Others reach the API server meanwhile, past the proxy.
//
// Flow: Launch takes the way in to an API server and listens on a port of
// 127.0.0.1. It speaks plain HTTP there, so that a client needs its Kubeconfig and
// nothing else, and TLS to the API server, with the credentials that it was given:
// whoever comes through the proxy is whom they stand for. Requests, impersonation
// included, and answers pass as they are; what a watch sends passes at once.
//
// Watches can be muted, and sent what the API server never sent.
//
// A Fault is for the requests whose line "METHOD PATH?QUERY" matches its pattern.
package apiproxy
