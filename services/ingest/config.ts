/** What the ingest process needs from its environment. */

import { requireKeys } from '#shared/io/keys/process-keys.ts'
import { type Env, natsVariables, readConfig, variables } from '#shared/io/process/config.ts'
import { tracingVariables } from '#shared/io/tracing/tracing.ts'

/** What an edge cannot work without. */
export const edgeKeyVariables = ['DIRECTORY_PUBLIC_KEY', 'EDGE_KEY', 'TELEMETRY_KEY'] as const

/** @throws ConfigError with every fault */
export function readIngestConfig(env: Env) {
  const config = readConfig(
    {
      ...natsVariables,
      DIRECTORY_PUBLIC_KEY: variables.DIRECTORY_PUBLIC_KEY,
      DIRECTORY_PUBLIC_KEY_PREVIOUS: variables.DIRECTORY_PUBLIC_KEY_PREVIOUS,
      EDGE_KEY: variables.EDGE_KEY,
      EDGE_KEY_PREVIOUS: variables.EDGE_KEY_PREVIOUS,
      TELEMETRY_KEY: variables.TELEMETRY_KEY,
      TELEMETRY_KEY_PREVIOUS: variables.TELEMETRY_KEY_PREVIOUS,
      /** Deprecated: the keys above are derived from it. */
      MASTER_KEY: variables.MASTER_KEY.optional(),
      MASTER_KEY_PREVIOUS: variables.MASTER_KEY_PREVIOUS,
      INGEST_LISTEN: variables.INGEST_LISTEN,
      INGEST_INTERNAL_LISTEN: variables.INGEST_INTERNAL_LISTEN,
      SERVICE_ISSUER: variables.SERVICE_ISSUER,
      PUBLIC_API_URL: variables.PUBLIC_API_URL,
      TRUSTED_PROXIES: variables.TRUSTED_PROXIES,
      ATTESTATION_STATUS_FILE: variables.ATTESTATION_STATUS_FILE,
      ATTESTATION_TEST_ROOTS_FILE: variables.ATTESTATION_TEST_ROOTS_FILE,
      NETWORK_DATA: variables.NETWORK_DATA,
      NETWORK_DATA_DOCUMENTATION: variables.NETWORK_DATA_DOCUMENTATION,
      STOP_DELAY_MS: variables.STOP_DELAY_MS,
      REUSE_PORT: variables.REUSE_PORT,
      ...tracingVariables,
      LOG_LEVEL: variables.LOG_LEVEL,
      PARENT_PID: variables.PARENT_PID,
    },
    env,
  )
  requireKeys(config, edgeKeyVariables)
  return config
}

export type IngestConfig = ReturnType<typeof readIngestConfig>
