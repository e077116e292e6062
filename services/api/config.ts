/** Configuration of the api process. */
import { clickhouseVariables, type Env, readConfig, variables } from '#shared/io/process/config.ts'
import { tracingVariables } from '#shared/io/tracing/tracing.ts'

/** Reads the settings from the environment. @throws ConfigError with every fault */
export function readApiConfig(env: Env) {
  return readConfig(
    {
      POSTGRES_URL: variables.POSTGRES_URL,
      ...clickhouseVariables,
      API_LISTEN: variables.API_LISTEN,
      API_INTERNAL_LISTEN: variables.API_INTERNAL_LISTEN,
      PUBLIC_API_URL: variables.PUBLIC_API_URL,
      PUBLIC_INGEST_URL: variables.PUBLIC_INGEST_URL,
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
