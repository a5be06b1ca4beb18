package transform

const daemonVariable = "KUBESYNC_TEST_DAEMON"

func daemonMain() int { return 0 }
