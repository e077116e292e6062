/** What the migration job needs from its environment. */
import {
  clickhouseVariables,
  type Env,
  natsVariables,
  readConfig,
  variables,
} from '#shared/io/process/config.ts'

/** @throws ConfigError with every fault */
export function readMigrateConfig(env: Env) {
  return readConfig(
    {
      ...natsVariables,
      ...clickhouseVariables,
      POSTGRES_URL: variables.POSTGRES_URL,
      POSTGRES_ROLE_PASSWORDS: variables.POSTGRES_ROLE_PASSWORDS,
      AUDIT_RETENTION_DAYS: variables.AUDIT_RETENTION_DAYS,
      LOG_LEVEL: variables.LOG_LEVEL,
    },
    env,
  )
}
