{{/*
The pod of a process. Takes (list $ name), gives its metadata and spec. Ports, command, secrets and
settings follow from files/processes.yaml.
*/}}
{{- define "di.pod" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $process := get (include "di.processes" $root | fromYaml) $name -}}
{{- $values := get $root.Values.processes $name -}}
{{- $settings := include "di.settings" . | fromYaml -}}
{{- $secrets := include "di.secrets" . | fromYaml -}}
{{- $certificates := $root.Values.certificates.existingSecret -}}
{{- $files := and (has "NETWORK_DATA" $process.settings) $root.Values.files.existingClaim -}}
{{- $delaySeconds := div (int (default 0 $settings.STOP_DELAY_MS)) 1000 -}}
metadata:
  labels:
    {{- include "di.labels" . | nindent 4 }}
  {{- with $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  # No process talks to Kubernetes.
  automountServiceAccountToken: false
  enableServiceLinks: false
  # A process drains for up to eight seconds after STOP_DELAY_MS. It serves on during that delay, so
  # no preStop hook is needed.
  terminationGracePeriodSeconds: {{ max 20 (add 15 $delaySeconds) }}
  {{- if eq $name "migrate" }}
  restartPolicy: OnFailure
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    # Secrets are readable for this group alone.
    fsGroup: 1000
    seccompProfile: { type: RuntimeDefault }
  {{- with include "di.waitForUpgrade" . }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: {{ $name }}
      image: {{ include "di.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      command:
        {{- toYaml $process.command | nindent 8 }}
      env:
        {{- if $process.publicPort }}
        - { name: {{ upper $name }}_LISTEN, value: "0.0.0.0:{{ $process.publicPort }}" }
        - { name: {{ upper $name }}_INTERNAL_LISTEN, value: "0.0.0.0:{{ $process.internalPort }}" }
        {{- else if $process.internalPort }}
        - { name: {{ upper $name }}_LISTEN, value: "0.0.0.0:{{ $process.internalPort }}" }
        {{- end }}
        {{- range $key, $value := $settings }}
        - { name: {{ $key }}, value: {{ $value | quote }} }
        {{- end }}
        {{- range $key, $file := $secrets }}
        - { name: {{ $key }}_FILE, value: /secrets/{{ $file }} }
        {{- end }}
      {{- if $process.internalPort }}
      ports:
        {{- with $process.publicPort }}
        - { name: http, containerPort: {{ . }} }
        {{- end }}
        - { name: internal, containerPort: {{ $process.internalPort }} }
      startupProbe:
        httpGet: { path: /healthz, port: internal }
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      readinessProbe:
        httpGet: { path: {{ include "di.readyPath" $name | quote }}, port: internal }
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 2
      # A process that lacks a server is alive: only one that answers nothing is restarted.
      livenessProbe:
        httpGet: { path: /healthz, port: internal }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- end }}
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        {{- include "di.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - { name: tmp, mountPath: /tmp }
        - { name: secrets, mountPath: /secrets, readOnly: true }
        {{- if $certificates }}
        - { name: certificates, mountPath: /certificates, readOnly: true }
        {{- end }}
        {{- if $files }}
        - { name: files, mountPath: /files, readOnly: true }
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: { sizeLimit: 64Mi }
    - name: secrets
      secret:
        secretName: {{ $root.Values.secrets.existingSecret }}
        defaultMode: 288 # 0440 in octal
        items:
          {{- range $_, $file := $secrets }}
          - { key: {{ $file }}, path: {{ $file }} }
          {{- end }}
    {{- if $certificates }}
    - name: certificates
      secret: { secretName: {{ $certificates }}, defaultMode: 288 }
    {{- end }}
    {{- with $files }}
    - name: files
      persistentVolumeClaim: { claimName: {{ . }}, readOnly: true }
    {{- end }}
  {{- if ne $name "migrate" }}
  topologySpreadConstraints:
    {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "di.selector" (list $root $name) | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/*
Whether a Service leads clients to a pod. Alerts need no ClickHouse, and most pages no NATS: with
either down, no pod of the process would be left.
*/}}
{{- define "di.readyPath" -}}
/readyz{{ with get (dict "api" "clickhouse" "console" "nats") . }}?exclude={{ . }}{{ end }}
{{- end -}}

{{- define "di.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* The process that an upgrade puts before this one, or nothing. */}}
{{- define "di.before" -}}
{{- get (dict "scorer" "console" "ingest" "scorer") . -}}
{{- end -}}

{{/*
Takes (list $ name): waits for a pod of this version of the process before it, or of the process
itself: then no upgrade is under way, and the pod replaces one or adds to them.
*/}}
{{- define "di.waitForUpgrade" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $seconds := int $root.Values.upgradeOrder.waitSeconds -}}
{{- $before := include "di.before" $name -}}
{{- if and $before (gt $seconds 0) -}}
{{- $processes := include "di.processes" $root | fromYaml -}}
initContainers:
  - name: await-{{ $before }}
    image: {{ include "di.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    command:
      - node
      - -e
      - |
        {{- $root.Files.Get "files/await-ready.js" | nindent 8 }}
      - {{ $seconds | quote }}
      {{- range list $before $name }}
      - http://{{ include "di.fullname" $root }}-{{ . }}-new:{{ (get $processes .).internalPort }}/readyz
      {{- end }}
    resources:
      requests: { cpu: 10m, memory: 64Mi }
      limits: { memory: 128Mi }
    securityContext:
      {{- include "di.containerSecurity" . | nindent 6 }}
{{- end -}}
{{- end -}}
