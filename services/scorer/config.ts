/** What the scorer is told by its environment. */
import type { z } from 'zod'
import { type Env, natsVariables, readConfig, variables } from '#shared/io/config.ts'

const shape = {
  ...natsVariables,
  CLICKHOUSE_URL: variables.CLICKHOUSE_URL,
  POSTGRES_URL: variables.POSTGRES_URL,
  SCORER_LISTEN: variables.SCORER_LISTEN,
  SHADOW_HOLD_MAX_MS: variables.SHADOW_HOLD_MAX_MS,
  LOG_LEVEL: variables.LOG_LEVEL,
  PARENT_PID: variables.PARENT_PID,
} as const

export type ScorerConfig = z.output<z.ZodObject<typeof shape>>

/** @throws ConfigError with every fault */
export const readScorerConfig = (env: Env): ScorerConfig => readConfig(shape, env)
