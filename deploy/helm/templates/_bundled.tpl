{{/* Parts that the bundled servers share. */}}

{{/* Takes (list $ store): the volume of a server's data. */}}
{{- define "di.bundledVolume" -}}
{{- $values := get (index . 0).Values.bundled (index . 1) -}}
volumeClaimTemplates:
  - metadata: { name: data }
    spec:
      accessModes: [ReadWriteOnce]
      {{- with $values.storageClass }}
      storageClassName: {{ . }}
      {{- end }}
      resources: { requests: { storage: {{ $values.storage }} } }
{{- end -}}

{{/* Takes (list $ store uid): pod settings, the same for every server. */}}
{{- define "di.bundledPod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ index . 2 }}
  runAsGroup: {{ index . 2 }}
  fsGroup: {{ index . 2 }}
  # PostgreSQL refuses a data folder that its group may write.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{/* Takes (list $ store port...): a Service of the store's name. */}}
{{- define "di.bundledService" -}}
{{- $root := index . 0 -}}
{{- $store := index . 1 -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ $store }}
  labels:
    {{- include "di.labels" (list $root $store) | nindent 4 }}
spec:
  selector:
    {{- include "di.selector" (list $root $store) | nindent 4 }}
  ports:
    {{- range slice . 2 }}
    - { name: tcp-{{ . }}, port: {{ . }} }
    {{- end }}
{{- end -}}

{{/* Takes (list $ key...): the volume with these keys of the Secret. */}}
{{- define "di.bundledSecrets" -}}
name: secrets
secret:
  secretName: {{ (index . 0).Values.secrets.existingSecret }}
  defaultMode: 288 # 0440 in octal
  items:
    {{- range slice . 1 }}
    - { key: {{ . }}, path: {{ . }} }
    {{- end }}
{{- end -}}
