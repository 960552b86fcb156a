{{- /* The chart has one place: programs find the controller and its claims in this namespace, and its certificate names it. */}}
{{- define "bcsnet.place" }}
{{- if ne .Release.Namespace "bcsnet-system" }}
{{- fail (printf "bcsnet goes into the namespace bcsnet-system, not %s; hint: --namespace bcsnet-system --create-namespace" .Release.Namespace) }}
{{- end }}
{{- if ne (empty .Values.apiServer.host) (empty .Values.apiServer.port) }}
{{- fail "apiServer.host and apiServer.port belong together; hint: kubectl cluster-info names both" }}
{{- end }}
{{- if and .Values.node.enabled (eq .Values.node.binDir .Values.node.netDir) }}
{{- fail "node.binDir and node.netDir are one directory; hint: the runtime's configuration names both" }}
{{- end }}
{{- if and .Values.ui.enabled (empty .Values.ui.tlsSecretName) }}
{{- fail "ui.enabled takes ui.tlsSecretName: tokens are sent to the pages, so they are served by HTTPS alone; hint: kubectl -n bcsnet-system create secret tls bcsnet-ui --cert=FILE --key=FILE" }}
{{- end }}
{{- range list (list "extraArgs" .Values.extraArgs .Values.logLevel) (list "node.extraArgs" .Values.node.extraArgs .Values.node.logLevel) }}
{{- $level := last . }}
{{- $field := first . }}
{{- range index . 1 }}
{{- if and $level (regexMatch "^--log-level(=|$)" .) }}
{{- fail (printf "%s and %s both say the log level; hint: take %s out of %s" $field (replace "extraArgs" "logLevel" $field) . $field) }}
{{- end }}
{{- end }}
{{- end }}
{{- $taken := dict "http-bind-address" "" "health-probe-bind-address" "" "plain-http" "plainHTTP" "node-resources" "nodeCapacity" "history-retention" "history.retention" "history-parts" "history.maxParts" "floatingip-config" "floatingipConfig" "hostnic-ipam-config" "hostnicIPAMConfig" "ipam-claims" "ipamClaims" "cluster-api" "clusterAPI" "services" "services.enabled" "services-default-class" "services.defaultClass" "services-kube-vip" "services.kubeVIP" "shared-pools-for-all" "sharedPoolsForAll" "tls-cert-file" "tls.secretName" "tls-private-key-file" "tls.secretName" }}
{{- range .Values.extraArgs }}
{{- $name := trimPrefix "--" . | splitList "=" | first }}
{{- if hasKey $taken $name }}
{{- with get $taken $name }}
{{- fail (printf "extraArgs has --%s, which is a value of its own with the rights that it takes; hint: set %s" $name .) }}
{{- else }}
{{- fail (printf "extraArgs has --%s, but the ports are those that the Service and the probes name" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- range .Values.extraEnv }}
{{- $name := .name | trimPrefix "BCSNET_" | lower | replace "_" "-" }}
{{- if eq .name "GOMEMLIMIT" }}
{{- fail "extraEnv has GOMEMLIMIT, which is a value of its own; hint: set goMemLimit" }}
{{- else if and (hasPrefix "BCSNET_" .name) (hasKey $taken $name) (ne $name "plain-http") }}
{{- fail (printf "extraEnv has %s, which is a value of its own; hint: set %s" .name (get $taken $name | default "nothing: the ports are fixed")) }}
{{- end }}
{{- end }}
{{- if and .Values.node.uninstall (not .Values.node.enabled) }}
{{- fail "node.uninstall removes the node side by its own pods: it goes with node.enabled=true" }}
{{- end }}
{{- end }}

{{- /* A memory limit of Go as text: Helm reads a number of a file as one with a fraction. */}}
{{- define "bcsnet.memory" -}}
{{- if kindIs "string" . }}{{ quote . }}{{ else }}{{ printf "%.0f" (float64 .) | quote }}{{ end }}
{{- end }}

{{- /* A repository, in imageRegistry in place of its own registry where that is set. */}}
{{- define "bcsnet.repository" -}}
{{- $registry := (first .).Values.imageRegistry -}}
{{- if $registry -}}
{{ trimSuffix "/" $registry }}/{{ regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" (last .) "" }}
{{- else -}}
{{ last . }}
{{- end -}}
{{- end }}

{{- /* Further labels of an object or a pod: commonLabels, then those of the values that are given. Ours stay. */}}
{{- define "bcsnet.labels" -}}
{{- $all := omit (merge dict (last . | default dict) ((first .).Values.commonLabels | default dict)) "app.kubernetes.io/name" -}}
{{- if $all }}
{{ toYaml $all }}
{{- end -}}
{{- end }}

{{- define "bcsnet.image" -}}
{{ include "bcsnet.repository" (list . .Values.image.repository) }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /*
Whether the controller answers plain HTTP of other machines. "auto" goes on as the controller that runs, by the rule of
pkg/cli/cmd/install/plain.go: its last argument about it counts, which manifests of this release have in any case, else
the variable of its environment. Else a release without HTTPS answered it, and is known by an argument of its manifests,
or as it came up and published no CA. Where Helm asks no cluster, lookup finds nothing.
*/}}
{{- define "bcsnet.plainHTTP" -}}
{{- if ne (toString .Values.plainHTTP) "auto" -}}
{{- .Values.plainHTTP -}}
{{- else -}}
{{- with lookup "apps/v1" "Deployment" "bcsnet-system" "bcsnet-controller" -}}
{{- $container := first .spec.template.spec.containers -}}
{{- $set := "not set" -}}
{{- range $container.env -}}
{{- if eq .name "BCSNET_PLAIN_HTTP" -}}
{{- $set = .value | default "" -}}
{{- end -}}
{{- end -}}
{{- if has "--forward-plain-http" ($container.args | default list) -}}
{{- $set = "true" -}}
{{- end -}}
{{- range $container.args -}}
{{- if eq . "--plain-http" -}}
{{- $set = "true" -}}
{{- else if hasPrefix "--plain-http=" . -}}
{{- $set = trimPrefix "--plain-http=" . -}}
{{- end -}}
{{- end -}}
{{- $cameUp := gt (dig "status" "readyReplicas" 0 . | int) 0 -}}
{{- range dig "status" "conditions" list . -}}
{{- $cameUp = or $cameUp (eq (.reason | default "") "NewReplicaSetAvailable") -}}
{{- end -}}
{{- if ne $set "not set" -}}
{{- has $set (list "1" "t" "T" "true" "TRUE" "True") -}}
{{- else if $cameUp -}}
{{- empty (lookup "v1" "ConfigMap" "bcsnet-system" "bcsnet-controller-ca") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* The volume with the CA that the node side trusts; empty where that is the controller's own, or it needs none. */}}
{{- define "bcsnet.caVolume" -}}
{{- if not .Values.node.uninstall -}}
{{- with .Values.tls -}}
{{- if and .caConfigMap .caSecretName -}}
{{- fail "the CA of the node side comes from one of tls.caConfigMap and tls.caSecretName" -}}
{{- else if .caConfigMap -}}
configMap: {name: {{ .caConfigMap }}, items: [{key: ca.crt, path: ca.crt}]}
{{- else if .caSecretName -}}
secret: {secretName: {{ .caSecretName }}, items: [{key: ca.crt, path: ca.crt}]}
{{- else if .secretName -}}
{{- fail "the node side has to trust the certificate in tls.secretName; hint: tls.caSecretName or tls.caConfigMap, with the key ca.crt" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Rules that several roles for people have. */}}
{{- define "bcsnet.rules.see" -}}
- apiGroups: [networkextension.bkbcs.tencent.com]
  resources: [bcsnetpools, bcsnetips, bcsnetipclaims]
  verbs: [get, list, watch]
# By HTTPS of the controller.
- apiGroups: [networkextension.bkbcs.tencent.com]
  resources: [allocations]
  verbs: [get, list]
{{- end }}

{{- define "bcsnet.rules.installation" -}}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [get, list, watch]
# What bcsnetctl version and doctor show of the installation.
- apiGroups: [apps]
  resources: [deployments]
  resourceNames: [bcsnet-controller]
  verbs: [get, list]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [bcsnet-controller]
  verbs: [get]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [bcsnet-controller-plain-callers]
  verbs: [get]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [bcsnethistories.networkextension.bkbcs.tencent.com, bcsnetipclaims.networkextension.bkbcs.tencent.com, bcsnetips.networkextension.bkbcs.tencent.com, bcsnetpools.networkextension.bkbcs.tencent.com]
  verbs: [get, list]
- apiGroups: [networking.k8s.io]
  resources: [servicecidrs]
  verbs: [get, list]
{{- end }}

{{- define "bcsnet.rules.workloads" -}}
# What bcsnetctl trace and explain read of the workloads of pods.
- apiGroups: [""]
  resources: [replicationcontrollers]
  verbs: [get]
- apiGroups: [apps]
  resources: [deployments, replicasets, statefulsets, daemonsets]
  verbs: [get]
- apiGroups: [batch]
  resources: [jobs, cronjobs]
  verbs: [get]
- apiGroups: [apps.kruise.io]
  resources: [clonesets, statefulsets]
  verbs: [get]
- apiGroups: [apps.tkestack.io]
  resources: [tapps]
  verbs: [get]
- apiGroups: [tkex.tencent.com]
  resources: [gamedeployments, gamestatefulsets]
  verbs: [get]
- apiGroups: [argoproj.io]
  resources: [rollouts]
  verbs: [get]
- apiGroups: [kubevirt.io]
  resources: [virtualmachines, virtualmachineinstances, virtualmachineinstancereplicasets, virtualmachineinstancemigrations]
  verbs: [get]
- apiGroups: [k8s.cni.cncf.io]
  resources: [ipamclaims, network-attachment-definitions]
  verbs: [get]
- apiGroups: [ipam.cluster.x-k8s.io]
  resources: [ipaddressclaims, ipaddresses]
  verbs: [get, list]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list]
{{- end }}

{{- define "bcsnet.uiImage" -}}
{{ include "bcsnet.repository" (list . .Values.ui.image.repository) }}{{ if .Values.ui.image.digest }}@{{ .Values.ui.image.digest }}{{ else }}:{{ .Values.ui.image.tag | default .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The address of the API server for a pod without a ServiceAccount's token. */}}
{{- define "bcsnet.apiServer" -}}
{{- with .Values.apiServer -}}
{{- if .host -}}
https://{{ if contains ":" .host }}[{{ .host }}]{{ else }}{{ .host }}{{ end }}:{{ .port }}
{{- else -}}
https://kubernetes.default.svc
{{- end -}}
{{- end -}}
{{- end }}

{{- define "bcsnet.nodeImage" -}}
{{ include "bcsnet.repository" (list . .Values.node.image.repository) }}{{ if .Values.node.image.digest }}@{{ .Values.node.image.digest }}{{ else }}:{{ .Values.node.image.tag | default .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
