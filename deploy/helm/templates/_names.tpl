{{- define "stowage.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: stowage
{{ include "stowage.selector" . }}
{{- end }}

{{- define "stowage.selector" -}}
app.kubernetes.io/name: stowaged
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "stowage.redis.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: stowage
{{ include "stowage.redis.selector" . }}
{{- end }}

{{- define "stowage.redis.selector" -}}
app.kubernetes.io/name: stowage-redis
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "stowage.decisions.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: stowage
{{ include "stowage.decisions.selector" . }}
{{- end }}

{{- define "stowage.decisions.selector" -}}
app.kubernetes.io/name: stowage-decisions
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* No port without TLS. A client shows its password: it needs no certificate. */}}
{{- define "stowage.redis.listen_by_tls" -}}
- --port
- "0"
- --tls-port
- "6379"
- --tls-cert-file
- /etc/redis-tls/tls.crt
- --tls-key-file
- /etc/redis-tls/tls.key
- --tls-auth-clients
- "no"
{{- end }}

{{/* Redis reads its certificate at its start alone: one that has ended, or is not of ca.crt any more, restarts it. */}}
{{- define "stowage.redis.ping_by_tls" -}}
exec: {command: [redis-cli, --tls, --cacert, /etc/redis-tls/ca.crt, ping]}
{{- end }}

{{/* The probe of a health service: Kubernetes' own, which speaks no TLS, or the client in the image. Of (chart, service). */}}
{{- define "stowage.probe" -}}
{{- $root := index . 0 -}}
{{- $service := index . 1 -}}
{{- if $root.Values.tls.secretName -}}
exec:
  command:
    - stowage_probe
    - --server=127.0.0.1:7070
    - --service={{ $service }}
    - --tls
    - --ca_file=/etc/stowage/tls/ca.crt
    - --server_name={{ $root.Values.tls.serverName }}
{{- else -}}
grpc: {port: 7070, service: {{ $service }}}
{{- end -}}
{{- end }}
