{{- define "gvList" -}}
# Fields of the objects

This page lists every field of the three kinds, with its default and its bounds. It is generated from the Go types. The API server
also checks rules that concern several fields, and its refusal says which rule failed. `kubectl explain bcsnetpool.spec` prints the
same text in a terminal.
{{ range . }}
## {{ .GroupVersionString }}
{{ range .SortedKinds }}
* [{{ . }}](#{{ . | lower }})
{{- end }}
{{ range .SortedTypes }}{{ template "type" . }}{{ end }}
{{- end }}
{{- end -}}

{{- define "type" -}}
{{- if markdownShouldRenderType . }}
### {{ .Name }}

{{ .Doc }}
{{ if .References }}
It appears in {{ range $i, $r := .SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $r }}{{ end }}.
{{ end -}}
{{- if .Members }}
| Field | Description | Default | Bounds |
| --- | --- | --- | --- |
{{ range .Members -}}
| `{{ .Name }}` {{ markdownRenderType .Type }} | {{ if eq .Name "metadata" }}See the Kubernetes API reference.{{ else }}{{ markdownRenderFieldDoc .Doc }}{{ end }} | {{ markdownRenderDefault .Default }} | {{ template "bounds" .Validation }} |
{{ end -}}
{{ end -}}
{{- if .EnumValues }}
| Value | Meaning |
| --- | --- |
{{ range .EnumValues -}}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{ end -}}
{{ end -}}
{{ end -}}
{{- end -}}

{{- define "bounds" -}}
{{- $first := true -}}
{{- range . -}}
{{- if not (contains "XValidation" .) -}}
{{- if not $first }}<br>{{ end }}{{ markdownRenderFieldDoc . }}{{ $first = false -}}
{{- end -}}
{{- end -}}
{{- end -}}
