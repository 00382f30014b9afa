{{- define "sluice.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.fullname" -}}
{{- $name := include "sluice.name" . }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Of pods that a controller of Kubernetes makes from a template that holds them, the webhook has seen the template. */ -}}
{{- define "sluice.notHeldByTemplate" -}}
!(request.kind.kind == 'Pod' && has(object.metadata.ownerReferences) &&
(request.userInfo.username == 'system:kube-controller-manager' ||
request.userInfo.username.startsWith('system:serviceaccount:kube-system:')) && has(object.spec.schedulerName) &&
(has(object.spec.schedulingGates) && object.spec.schedulingGates.exists(g, g.name == 'fluxqueue') ?
object.spec.schedulerName != 'FluxionScheduler' :
has(object.metadata.annotations) && 'sluice.sh/held' in object.metadata.annotations && object.spec.schedulerName in
['{{ include "sluice.schedulerNames" . | fromJsonArray | join "', '" }}']))
{{- end }}

{{- define "sluice.account" -}}
{{ .Values.serviceAccount.name | default (ternary (include "sluice.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "sluice.priorityClass" -}}
{{- if or .Values.priorityClass.create .Values.priorityClass.name }}{{ .Values.priorityClass.name | default (include "sluice.fullname" .) }}{{ end }}
{{- end }}

{{- /* Values of the charts of Fluence, Fluxnetes and Fluxqueue, as far as they have a meaning here. */ -}}
{{- define "sluice.old" -}}
{{- $manager := .Values.controllerManager.manager | default dict }}
{{- $level := .Values.scheduler.loggingLevel | default .Values.sidecar.loggingLevel | toString }}
replicas: {{ max (.Values.scheduler.replicaCount | default 0 | int) (.Values.controllerManager.replicas | default 0 | int) }}
policy: {{ .Values.scheduler.policy | default .Values.sidecar.policy | default "" | quote }}
name: {{ .Values.scheduler.name | default "" | quote }}
debug: {{ and (regexMatch "^[0-9]+$" $level) (ge (atoi $level) 4) }}
pullPolicy: {{ .Values.scheduler.pullPolicy | default "" | quote }}
port: {{ .Values.scheduler.port | default .Values.sidecar.port | default 0 }}
external: {{ or .Values.scheduler.enableExternalService .Values.sidecar.enableExternalService | default false }}
databaseUrl: {{ dig "env" "databaseUrl" "" $manager | quote }}
{{- /* The chart decides about ports and election: their options would contradict its probes, its Service and its roles. */}}
{{- $args := list }}
{{- $elect := .Values.scheduler.leaderElect | default false }}
{{- range $manager.args }}
{{- if regexMatch "^--(leader-elect|enableLeaderElection)(=|$)" . }}{{ $elect = not (regexMatch "=(false|0)$" .) }}
{{- else if not (regexMatch "^--(health-probe-bind-address|probeAddr|metrics-bind-address)=" .) }}{{ $args = append $args . }}
{{- end }}
{{- end }}
elect: {{ $elect }}
args: {{ $args | toJson }}
resources: {{ $manager.resources | default dict | toJson }}
annotations: {{ dig "serviceAccount" "annotations" dict .Values.controllerManager | toJson }}
nodeSelector: {{ .Values.controller.nodeSelector | default dict | toJson }}
affinity: {{ .Values.controller.affinity | default dict | toJson }}
tolerations: {{ .Values.controller.tolerations | default list | toJson }}
{{- end }}

{{- define "sluice.replicas" -}}
{{- $old := include "sluice.old" . | fromYaml }}
{{- $old.replicas | default .Values.replicas | int }}
{{- end }}

{{- /* A single replica with a SQLite file has nobody to elect, whatever the values of the other charts say. */ -}}
{{- define "sluice.elects" -}}
{{- $old := include "sluice.old" . | fromYaml }}
{{- $asked := or (dig "leader" "elect" false .Values.config) (and $old.elect (not (include "sluice.sqlite" .))) }}
{{- if or (gt (include "sluice.replicas" . | int) 1) $asked }}true{{ end }}
{{- end }}

{{- define "sluice.sqlite" -}}
{{- if and (eq .Values.store.kind "sqlite") (not (include "sluice.postgres" .)) }}true{{ end }}
{{- end }}

{{- define "sluice.postgres" -}}
{{- $old := include "sluice.old" . | fromYaml }}
{{- if or $old.databaseUrl (eq .Values.store.kind "postgres") }}true{{ end }}
{{- end }}

{{- define "sluice.grpcPort" -}}
{{- $old := include "sluice.old" . | fromYaml }}
{{- if or .Values.grpc.enabled $old.external }}{{ $old.port | default .Values.grpc.port | int }}{{ end }}
{{- end }}

{{- /* The daemon's own list of scheduler names, and those of schedulerNames. */ -}}
{{- define "sluice.schedulerNames" -}}
{{- $old := include "sluice.old" . | fromYaml }}
{{- $names := concat (list "sluice" "fluence" "fluxnetes" "FluxionScheduler" "kubeflux" "scheduling-plugin") .Values.schedulerNames }}
{{- dig "schedulerNames" (concat $names (list $old.name) | compact | uniq) .Values.config | toJson }}
{{- end }}

{{- /* sluiced.yaml: settings that follow from the chart's values, overridden by config. */ -}}
{{- define "sluice.settings" -}}
{{- $old := include "sluice.old" . | fromYaml }}
{{- $full := include "sluice.fullname" . }}
{{- $ns := .Release.Namespace }}
{{- $grpc := include "sluice.grpcPort" . }}
{{- $own := dict
  "schedulerNames" (include "sluice.schedulerNames" . | fromJsonArray)
  "kube" (dict "nativeGroups" .Values.parts.nativeGroups)
  "serve" (dict "https" ":8443" "health" ":8081" "namespace" $ns "secret" (printf "%s-https" $full)
    "names" (list "localhost" (printf "%s.%s.svc" $full $ns) (printf "%s.%s" $full $ns)))
  "webhook" (dict "enabled" .Values.parts.webhook "listen" ":9443" "namespace" $ns "secret" (printf "%s-webhook" $full)
    "names" (list (printf "%s-webhook.%s.svc" $full $ns)) "configuration" $full)
  "held" (dict "enabled" .Values.parts.held "never" (list "kube-system" "kube-public" "kube-node-lease" $ns | uniq))
  "leader" (dict "elect" (eq (include "sluice.elects" .) "true") "namespace" $ns "name" $full)
  "log" (dict "format" "json" "level" (ternary "debug" "info" $old.debug)) }}
{{- if $old.policy }}{{ $_ := set $own "match" (dict "policy" $old.policy) }}{{ end }}
{{- if $grpc }}{{ $_ := set $own "grpc" (dict "port" (int $grpc) "host" "" "external" (or .Values.grpc.external $old.external)) }}{{ end }}
{{- if not (include "sluice.postgres" .) }}
{{- $_ := set $own "store" (dict "url" (ternary "memory:" "/var/lib/sluice/sluice.db" (eq .Values.store.kind "memory"))) }}
{{- end }}
{{- mergeOverwrite $own (deepCopy .Values.config) | toYaml }}
{{- end }}

{{- /* Mistakes that a schema cannot express. */ -}}
{{- define "sluice.check" -}}
{{- if and (include "sluice.elects" .) (include "sluice.sqlite" .) }}
{{- fail "several replicas need a shared store: set store.kind=postgres and put its address into a Secret (store.postgres)" }}
{{- end }}
{{- end }}
