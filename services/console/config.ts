/** The console's settings, from environment variables. */
import { type Env, natsVariables, readConfig, variables } from '#shared/io/process/config.ts'

/** @throws ConfigError with every fault */
export function readConsoleConfig(env: Env) {
  return readConfig(
    {
      ...natsVariables,
      POSTGRES_URL: variables.POSTGRES_URL,
      CLICKHOUSE_URL: variables.CLICKHOUSE_URL,
      MASTER_KEY: variables.MASTER_KEY,
      MASTER_KEY_PREVIOUS: variables.MASTER_KEY_PREVIOUS,
      ADMIN_TOKEN: variables.ADMIN_TOKEN,
      ANALYSTS_URL: variables.ANALYSTS_URL,
      CONSOLE_LISTEN: variables.CONSOLE_LISTEN,
      CONSOLE_INTERNAL_LISTEN: variables.CONSOLE_INTERNAL_LISTEN,
      PUBLIC_URL: variables.PUBLIC_URL,
      TRUSTED_PROXIES: variables.TRUSTED_PROXIES,
      ALLOW_PRIVATE_WEBHOOKS: variables.ALLOW_PRIVATE_WEBHOOKS,
      WEBHOOK_ALLOW_NETWORKS: variables.WEBHOOK_ALLOW_NETWORKS,
      LOG_LEVEL: variables.LOG_LEVEL,
      PARENT_PID: variables.PARENT_PID,
    },
    env,
  )
}

export type ConsoleConfig = ReturnType<typeof readConsoleConfig>
