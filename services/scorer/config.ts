/** The scorer's configuration from the environment. */
import type { z } from 'zod'
import {
  ConfigError,
  clickhouseVariables,
  type Env,
  natsVariables,
  readConfig,
  variables,
} from '#shared/io/process/config.ts'
import { deriveKey } from '#shared/io/tenants/directory/proofs.ts'
import { tracingVariables } from '#shared/io/tracing/tracing.ts'

const shape = {
  ...natsVariables,
  ...clickhouseVariables,
  POSTGRES_URL: variables.POSTGRES_URL,
  TELEMETRY_KEY: variables.TELEMETRY_KEY,
  TELEMETRY_KEY_PREVIOUS: variables.TELEMETRY_KEY_PREVIOUS,
  /** An alternative to TELEMETRY_KEY, which is derived from it. */
  MASTER_KEY: variables.MASTER_KEY.optional(),
  MASTER_KEY_PREVIOUS: variables.MASTER_KEY_PREVIOUS,
  SCORER_LISTEN: variables.SCORER_LISTEN,
  SHADOW_HOLD_MAX_MS: variables.SHADOW_HOLD_MAX_MS,
  ...tracingVariables,
  LOG_LEVEL: variables.LOG_LEVEL,
  PARENT_PID: variables.PARENT_PID,
} as const

type ScorerConfig = z.output<z.ZodObject<typeof shape>>

/** @throws ConfigError with every fault */
export function readScorerConfig(env: Env): ScorerConfig {
  const config = readConfig(shape, env)
  if (config.TELEMETRY_KEY === undefined && config.MASTER_KEY === undefined) {
    throw new ConfigError(['TELEMETRY_KEY is required: `di secrets telemetry-key` prints it'])
  }
  return config
}

/** @returns the keys with which edges prove their batches, the present one first */
export function toTelemetryKeys(config: ScorerConfig): [string, ...string[]] {
  const derive = (key: string | undefined) =>
    key === undefined ? undefined : deriveKey(key, 'telemetry batch')
  const [first, ...others] = [
    config.TELEMETRY_KEY ?? derive(config.MASTER_KEY),
    config.TELEMETRY_KEY_PREVIOUS ?? derive(config.MASTER_KEY_PREVIOUS),
  ].filter((key) => key !== undefined)
  return [first!, ...others]
}
