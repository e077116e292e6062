/** The console's settings, from environment variables. */
import type { OidcSettings } from '#shared/io/operators/oidc-client.ts'
import {
  ConfigError,
  clickhouseVariables,
  type Env,
  natsVariables,
  readConfig,
  variables,
} from '#shared/io/process/config.ts'

/** @throws ConfigError with every fault */
export function readConsoleConfig(env: Env) {
  const config = readConfig(
    {
      ...natsVariables,
      POSTGRES_URL: variables.POSTGRES_URL,
      ...clickhouseVariables,
      MASTER_KEY: variables.MASTER_KEY,
      MASTER_KEY_PREVIOUS: variables.MASTER_KEY_PREVIOUS,
      ADMIN_TOKEN: variables.ADMIN_TOKEN,
      ANALYSTS_URL: variables.ANALYSTS_URL,
      CLICKHOUSE_EMBEDDED: variables.CLICKHOUSE_EMBEDDED,
      CONSOLE_LISTEN: variables.CONSOLE_LISTEN,
      CONSOLE_INTERNAL_LISTEN: variables.CONSOLE_INTERNAL_LISTEN,
      PUBLIC_URL: variables.PUBLIC_URL,
      PUBLIC_API_URL: variables.PUBLIC_API_URL,
      PUBLIC_INGEST_URL: variables.PUBLIC_INGEST_URL,
      OIDC_ISSUER: variables.OIDC_ISSUER,
      OIDC_CLIENT_ID: variables.OIDC_CLIENT_ID,
      OIDC_CLIENT_SECRET: variables.OIDC_CLIENT_SECRET,
      OIDC_ONLY: variables.OIDC_ONLY,
      OIDC_TRUST_EMAILS_OF: variables.OIDC_TRUST_EMAILS_OF,
      OIDC_STEP_UP: variables.OIDC_STEP_UP,
      TRUSTED_PROXIES: variables.TRUSTED_PROXIES,
      ATTESTATION_STATUS_FILE: variables.ATTESTATION_STATUS_FILE,
      ATTESTATION_TEST_ROOTS_FILE: variables.ATTESTATION_TEST_ROOTS_FILE,
      NETWORK_DATA: variables.NETWORK_DATA,
      STOP_DELAY_MS: variables.STOP_DELAY_MS,
      ALLOW_PRIVATE_WEBHOOKS: variables.ALLOW_PRIVATE_WEBHOOKS,
      WEBHOOK_ALLOW_NETWORKS: variables.WEBHOOK_ALLOW_NETWORKS,
      LOG_LEVEL: variables.LOG_LEVEL,
      PARENT_PID: variables.PARENT_PID,
    },
    env,
  )
  const faults: string[] = []
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: secret } = config
  if ((issuer === undefined) !== (clientId === undefined)) {
    faults.push('OIDC_ISSUER and OIDC_CLIENT_ID must be set together')
  }
  if (issuer === undefined && secret !== undefined) {
    faults.push('OIDC_CLIENT_SECRET needs OIDC_ISSUER and OIDC_CLIENT_ID')
  }
  if (issuer === undefined && config.OIDC_ONLY) {
    faults.push('OIDC_ONLY needs OIDC_ISSUER: without it there is no way to sign in')
  }
  const { OIDC_TRUST_EMAILS_OF: trusted } = config
  if (trusted !== undefined && trusted !== issuer) {
    faults.push('OIDC_TRUST_EMAILS_OF must be the text of OIDC_ISSUER: trust is in one provider')
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return config
}

/** The identity provider of the settings, or null. */
export function toOidcSettings(config: ConsoleConfig): OidcSettings | null {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: secret } = config
  if (issuer === undefined || clientId === undefined) return null
  const { OIDC_TRUST_EMAILS_OF: trusted, OIDC_STEP_UP: stepUp } = config
  const trustsEmails = trusted === issuer
  return { issuer, clientId, clientSecret: secret, trustsEmails, stepsUp: stepUp === 'provider' }
}

export type ConsoleConfig = ReturnType<typeof readConsoleConfig>
