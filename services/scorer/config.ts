/** The scorer's configuration from the environment. */
import type { z } from 'zod'
import { readKeys, requireKeys } from '#shared/io/keys/process-keys.ts'
import {
  clickhouseVariables,
  type Env,
  natsVariables,
  readConfig,
  variables,
} from '#shared/io/process/config.ts'
import { tracingVariables } from '#shared/io/tracing/tracing.ts'

/** What a scorer cannot work without. */
const scorerKeyVariables = ['TELEMETRY_KEY'] as const

const shape = {
  ...natsVariables,
  ...clickhouseVariables,
  POSTGRES_URL: variables.POSTGRES_URL,
  TELEMETRY_KEY: variables.TELEMETRY_KEY,
  TELEMETRY_KEY_PREVIOUS: variables.TELEMETRY_KEY_PREVIOUS,
  /** Deprecated: TELEMETRY_KEY is derived from it. */
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
  requireKeys(config, scorerKeyVariables)
  return config
}

/** @returns the keys with which edges prove their batches, the present one first */
export const toTelemetryKeys = (config: ScorerConfig) => readKeys(config, 'TELEMETRY_KEY')
