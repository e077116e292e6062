/** What the ingest process needs from its environment. */
import { type Env, natsVariables, readConfig, variables } from '#shared/io/process/config.ts'
import { tracingVariables } from '#shared/io/tracing/tracing.ts'

export function readIngestConfig(env: Env) {
  return readConfig(
    {
      ...natsVariables,
      MASTER_KEY: variables.MASTER_KEY,
      MASTER_KEY_PREVIOUS: variables.MASTER_KEY_PREVIOUS,
      INGEST_LISTEN: variables.INGEST_LISTEN,
      INGEST_INTERNAL_LISTEN: variables.INGEST_INTERNAL_LISTEN,
      TRUSTED_PROXIES: variables.TRUSTED_PROXIES,
      STOP_DELAY_MS: variables.STOP_DELAY_MS,
      REUSE_PORT: variables.REUSE_PORT,
      ...tracingVariables,
      LOG_LEVEL: variables.LOG_LEVEL,
      PARENT_PID: variables.PARENT_PID,
    },
    env,
  )
}

export type IngestConfig = ReturnType<typeof readIngestConfig>
