{{/* The name of the Deployment, and what the names of all other objects start with. */}}
{{- define "kubesync.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of every object; call with (dict "root" $ "component" "daemon"). */}}
{{- define "kubesync.labels" -}}
{{ include "kubesync.podLabels" . }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Chart.AppVersion }}
app.kubernetes.io/version: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Labels that no upgrade changes: a changed label of the pod would start another one. */}}
{{- define "kubesync.podLabels" -}}
name: {{ include "kubesync.fullname" .root }}
app.kubernetes.io/name: kubesync
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "kubesync.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "kubesync.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The subjects of all bindings. */}}
{{- define "kubesync.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kubesync.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "kubesync.secretName" -}}
{{- default (include "kubesync.fullname" .) .Values.secret.name -}}
{{- end -}}

{{/*
The name of the ConfigMap with the CONFIG list. It cannot start with "kubesync-": those
names belong to the apply sets of the repos, whatever these are called.
*/}}
{{- define "kubesync.configName" -}}
config-{{ include "kubesync.fullname" . }}
{{- end -}}

{{- define "kubesync.image" -}}
{{- $image := .Values.image -}}
{{- $image.repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* A value as the text of a variable. Helm reads a number as a float: 1000000 would be 1e+06. */}}
{{- define "kubesync.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ printf "%.0f" . }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{/*
Fails where values would put a secret in plain sight, or set a variable twice.
A message never holds the value.
*/}}
{{- define "kubesync.check" -}}
{{- $password := `(^|[\s,])(https?://[^/\s,]*@|[A-Za-z+]+://[^/@\s,]*:[^/\s,]*@)` -}}
{{- $option := `(^|\s)(-[uUHb]|--(user|proxy-user|header|proxy-header|cookie|password|token)([\s=]|$))` -}}
{{- range $i, $url := .Values.repos -}}
{{- if regexMatch $password $url -}}
{{- fail (printf "repos[%d]: the URL holds credentials, which everyone who reads the Deployment would see; put them in the Secret, as REPOCREDS" $i) -}}
{{- end -}}
{{- end -}}
{{- range $i, $entry := .Values.config -}}
{{- if regexMatch $password $entry.url -}}
{{- fail (printf "config[%d].url: it holds credentials, which everyone who reads the ConfigMap would see; put them in a Secret, as creds_file (see secretMounts) or REPOCREDS" $i) -}}
{{- end -}}
{{- end -}}
{{- $variables := .Values.extraEnv -}}
{{- range $name, $value := .Values.env -}}
{{- $variables = append $variables (dict "name" $name "value" (include "kubesync.text" $value)) -}}
{{- end -}}
{{- $set := dict "POD_NAMESPACE" "the chart" "POD_NAME" "the chart" -}}
{{- if eq .Values.tier "application" }}{{ $_ := set $set "TIER" "tier" }}{{ end -}}
{{- if .Values.repos }}{{ $_ := set $set "REPO" "repos" }}{{ end -}}
{{- if .Values.config }}{{ $_ := set $set "CONFIG" "config" }}{{ end -}}
{{- if .Values.namespaces }}{{ $_ := set $set "NAMESPACES" "namespaces" }}{{ end -}}
{{- range $variables -}}
{{- $value := default "" .value -}}
{{- $secret := and $value (has .name (list "REPOCREDS" "NOTIFY_URL")) -}}
{{- if has .name (list "CURL_OPTIONS" "KUBECTL_OPTIONS") }}{{ $secret = or $secret (regexMatch $option $value) }}{{ end -}}
{{- if or $secret (regexMatch $password $value) -}}
{{- fail (printf "%s: the value is a secret, which everyone who reads the Deployment would see; put it in the Secret (secret.name or secret.data)" .name) -}}
{{- end -}}
{{- if hasKey $set .name -}}
{{- fail (printf "%s: it is in env or extraEnv, and %s sets it as well; give one of them" .name (get $set .name)) -}}
{{- end -}}
{{- $_ := set $set .name "another of their entries" -}}
{{- end -}}
{{- end -}}
