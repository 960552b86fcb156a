{{- /* The chart has one place: programs find the controller and its claims in this namespace, and its certificate names it. */}}
{{- define "bcsnet.place" }}
{{- if ne .Release.Namespace "bcsnet-system" }}
{{- fail (printf "bcsnet goes into the namespace bcsnet-system, not %s; hint: --namespace bcsnet-system --create-namespace" .Release.Namespace) }}
{{- end }}
{{- end }}

{{- define "bcsnet.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "bcsnet.nodeImage" -}}
{{ .Values.node.image.repository }}{{ if .Values.node.image.digest }}@{{ .Values.node.image.digest }}{{ else }}:{{ .Values.node.image.tag | default .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
