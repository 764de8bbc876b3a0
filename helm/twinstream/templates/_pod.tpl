{{/*
The pod of a role: `root` is the context of the chart, `role` api or matcher, `own` the values of that role. Pods of
the API reach Redis alone, and have nothing of Kafka.
*/}}
{{- define "twinstream.pod" -}}
{{- $values := .root.Values -}}
{{- $matcher := eq .role "matcher" -}}
metadata:
  labels:
    {{- include "twinstream.roleLabels" . | nindent 4 }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Another comparison file is another pod.
    checksum/comparisons: {{ toJson $values.comparisons | sha256sum }}
    {{- if $values.trials }}
    checksum/trials: {{ toJson $values.trials | sha256sum }}
    {{- end }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "twinstream.name" .root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  # Its own bound for a stop is 20 s: last checkpoint, leases handed back, HTTP closed.
  terminationGracePeriodSeconds: 30
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile:
      type: RuntimeDefault
  {{- with $values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $values.affinity }}
  affinity: {{- toYaml $values.affinity | nindent 4 }}
  {{- else }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels: {{- include "twinstream.roleSelector" . | nindent 16 }}
  {{- end }}
  containers:
    - name: twinstream
      image: {{ include "twinstream.image" .root }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        - serve
        - --role={{ .role }}
        {{- range $name, $_ := $values.comparisons }}
        - /etc/twinstream/comparisons/{{ $name }}.yaml
        {{- end }}
        {{- range $name, $_ := $values.trials }}
        - --trial=/etc/twinstream/comparisons/{{ $name }}.trial.yaml
        {{- end }}
        {{- if and $matcher $values.kafka.existingSecret.name }}
        - --config=/etc/twinstream/settings/{{ $values.kafka.existingSecret.key }}
        {{- end }}
      env:
        - name: TWINSTREAM_REDIS
          {{- if $values.redis.existingSecret.name }}
          valueFrom:
            secretKeyRef: {{- toYaml $values.redis.existingSecret | nindent 14 }}
          {{- else }}
          value: {{ $values.redis.url | quote }}
          {{- end }}
        - name: TWINSTREAM_BIND
          value: {{ ternary "0.0.0.0:8080" "127.0.0.1:8080" (ne $values.access.tokenSecret.name "") | quote }}
        {{- with $values.access }}
        {{- if .tokenSecret.name }}
        - name: TWINSTREAM_TOKEN_FILE
          value: /etc/twinstream/access/{{ .tokenSecret.key }}
        {{- end }}
        {{- if .tlsSecret }}
        - name: TWINSTREAM_TLS_CERT
          value: /etc/twinstream/tls/tls.crt
        - name: TWINSTREAM_TLS_KEY
          value: /etc/twinstream/tls/tls.key
        {{- end }}
        {{- if .basePath }}
        - name: TWINSTREAM_BASE_PATH
          value: {{ .basePath | quote }}
        {{- end }}
        {{- end }}
        - name: TWINSTREAM_SHARDS
          value: {{ $values.shards | quote }}
        - name: TWINSTREAM_BROKERS
          value: {{ $values.kafka.brokers | quote }}
        {{- if not $matcher }}
        {{- with $values.kafka.recordUrl }}
        - name: TWINSTREAM_RECORD_URL
          value: {{ . | quote }}
        {{- end }}
        {{- end }}
        {{- if $matcher }}
        - name: TWINSTREAM_READ_FROM
          value: {{ $values.readFrom | quote }}
        {{- if $values.masking.existingSecret.name }}
        - name: TWINSTREAM_MASK_KEY_FILE
          value: /etc/twinstream/masking/{{ $values.masking.existingSecret.key }}
        {{- end }}
        {{- with $values.memoryLimit }}
        - name: TWINSTREAM_MEMORY_LIMIT
          value: {{ . | quote }}
        {{- end }}
        {{- with $values.kafka.properties }}
        - name: TWINSTREAM_KAFKA
          value: {{ toJson . | quote }}
        {{- end }}
        {{- end }}
      {{- if $values.access.tokenSecret.name }}
      ports:
        - {name: http, containerPort: 8080, protocol: TCP}
      {{- end }}
      # One who answers is not started anew, whatever else is wrong. An API pod is ready when it answers, be it that
      # nothing is known; a matcher pod when it owns its comparisons or stands by, and reaches what it needs.
      startupProbe:
        {{- include "twinstream.probe" (dict "root" .root "path" "/healthz") | nindent 8 }}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      livenessProbe:
        {{- include "twinstream.probe" (dict "root" .root "path" "/healthz") | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        {{- include "twinstream.probe" (dict "root" .root "path" "/readyz") | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        runAsNonRoot: true
        capabilities:
          drop: [ALL]
        seccompProfile:
          type: RuntimeDefault
      resources: {{- toYaml .own.resources | nindent 8 }}
      volumeMounts:
        - name: comparisons
          mountPath: /etc/twinstream/comparisons
          readOnly: true
        {{- if and $matcher $values.kafka.existingSecret.name }}
        - name: settings
          mountPath: /etc/twinstream/settings
          readOnly: true
        {{- end }}
        {{- if and $matcher $values.masking.existingSecret.name }}
        - name: masking
          mountPath: /etc/twinstream/masking
          readOnly: true
        {{- end }}
        {{- if and $matcher $values.kafka.filesSecret }}
        - name: kafka
          mountPath: /etc/twinstream/kafka
          readOnly: true
        {{- end }}
        {{- if $values.access.tokenSecret.name }}
        - name: access
          mountPath: /etc/twinstream/access
          readOnly: true
        {{- end }}
        {{- if $values.access.tlsSecret }}
        - name: tls
          mountPath: /etc/twinstream/tls
          readOnly: true
        {{- end }}
        - name: tmp
          mountPath: /tmp
  volumes:
    - name: comparisons
      configMap:
        name: {{ include "twinstream.name" .root }}-comparisons
    {{- with $values.kafka.existingSecret }}
    {{- if and $matcher .name }}
    - name: settings
      secret:
        secretName: {{ .name }}
        defaultMode: 0440
        items:
          - {key: {{ .key }}, path: {{ .key }}}
    {{- end }}
    {{- end }}
    {{- with $values.masking.existingSecret }}
    {{- if and $matcher .name }}
    - name: masking
      secret:
        secretName: {{ .name }}
        defaultMode: 0440
        items:
          - {key: {{ .key }}, path: {{ .key }}}
    {{- end }}
    {{- end }}
    {{- if and $matcher $values.kafka.filesSecret }}
    - name: kafka
      secret:
        secretName: {{ $values.kafka.filesSecret }}
        defaultMode: 0440
    {{- end }}
    {{- with $values.access.tokenSecret }}
    {{- if .name }}
    # The whole folder, not one file of it, so that a token that is given or withdrawn reaches the pod.
    - name: access
      secret:
        secretName: {{ .name }}
        defaultMode: 0440
    {{- end }}
    {{- end }}
    {{- with $values.access.tlsSecret }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    - name: tmp
      emptyDir:
        sizeLimit: 64Mi
{{- end -}}
