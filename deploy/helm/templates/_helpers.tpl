{{/* Names, labels and the settings of processes. */}}

{{- define "di.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "di.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The version of the image as the value of a label. */}}
{{- define "di.version" -}}
{{- $version := default (default .Chart.AppVersion .Values.image.tag) .Values.image.digest -}}
{{- regexReplaceAll "[^A-Za-z0-9._-]+" (trimPrefix "sha256:" $version) "-" | trunc 40 | trimAll "-._" -}}
{{- end -}}

{{/* Takes (list $ component): labels that never change. */}}
{{- define "di.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Takes (list $ component). */}}
{{- define "di.labels" -}}
{{- $root := index . 0 -}}
{{ include "di.selector" . }}
app.kubernetes.io/version: {{ include "di.version" $root | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What deploy/helm-processes.ts made from compose.yaml and the processes' configuration. */}}
{{- define "di.processes" -}}
{{- .Files.Get "files/processes.yaml" -}}
{{- end -}}

{{/* The processes that run for ever. */}}
{{- define "di.deployed" -}}
{{- omit (include "di.processes" . | fromYaml) "migrate" | toYaml -}}
{{- end -}}

{{/* Whether the servers are all outside the chart, so that a job can migrate them before it. */}}
{{- define "di.external" -}}
{{- with .Values.bundled -}}
{{- if not (or .nats.enabled .postgres.enabled .clickhouse.enabled) -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* A value as text: large numbers of values.yaml are floats. */}}
{{- define "di.text" -}}
{{- if kindIs "float64" . -}}{{ int64 . }}{{- else -}}{{ toString . }}{{- end -}}
{{- end -}}

{{/* Takes (list $ name): the settings of a process that are set, as YAML. */}}
{{- define "di.settings" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $process := get (include "di.processes" $root | fromYaml) $name -}}
{{- $defaults := dict -}}
{{- if $root.Values.bundled.nats.enabled -}}
{{- $_ := set $defaults "NATS_REPLICAS" "3" -}}
{{- end -}}
{{- $own := (get $root.Values.processes $name).settings -}}
{{- range $key, $_ := $own -}}
{{- if not (has $key $process.settings) -}}
{{- fail (printf "processes.%s.settings: the process does not read %s" $name $key) -}}
{{- end -}}
{{- end -}}
{{- $values := mergeOverwrite $defaults (deepCopy $root.Values.settings) $own -}}
{{- $set := dict -}}
{{- range $key := $process.settings -}}
{{- $text := include "di.text" (get $values $key) -}}
{{- if ne $text "" -}}{{- $_ := set $set $key $text -}}{{- end -}}
{{- end -}}
{{- toYaml $set -}}
{{- end -}}

{{/* Takes (list $ name): the secrets of a process with their keys in the Secret, as YAML. */}}
{{- define "di.secrets" -}}
{{- $root := index . 0 -}}
{{- $process := get (include "di.processes" $root | fromYaml) (index . 1) -}}
{{- $secrets := deepCopy $process.secrets -}}
{{- range $also := $root.Values.secrets.also -}}
{{- with get $process.optionalSecrets $also -}}{{- $_ := set $secrets $also . -}}{{- end -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end -}}

{{/* Fails when a setting or secret belongs to no process. */}}
{{- define "di.checkValues" -}}
{{- $settings := list -}}
{{- $secrets := list -}}
{{- range $_, $process := include "di.processes" . | fromYaml -}}
{{- $settings = concat $settings $process.settings -}}
{{- $secrets = concat $secrets (keys $process.optionalSecrets) -}}
{{- end -}}
{{- range $key, $_ := .Values.settings -}}
{{- if not (has $key $settings) -}}
{{- fail (printf "settings: no process reads %s; secrets come from secrets.existingSecret" $key) -}}
{{- end -}}
{{- end -}}
{{- range $key := .Values.secrets.also -}}
{{- if not (has $key $secrets) -}}
{{- fail (printf "secrets.also: no process reads %s" $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Takes (list $ store): the rule of a NetworkPolicy that lets a pod connect to a store. */}}
{{- define "di.storeEgress" -}}
{{- $root := index . 0 -}}
{{- $store := index . 1 -}}
{{- $where := get $root.Values.networkPolicy.stores $store -}}
- ports:
    {{- range $where.ports }}
    - { protocol: TCP, port: {{ . }} }
    {{- end }}
  {{- if (get $root.Values.bundled $store).enabled }}
  to:
    - podSelector:
        matchLabels:
          {{- include "di.selector" (list $root $store) | nindent 10 }}
  {{- else }}
  {{- with $where.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end -}}
