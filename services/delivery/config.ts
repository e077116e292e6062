/** Configuration of the delivery process, with the constraints between its settings. */
import { z } from 'zod'
import {
  deliveriesInFlightMax,
  deliveriesInFlightPerTenantMax,
} from '#shared/core/base/limits/deliveries.ts'
import { requireKeys } from '#shared/io/keys/process-keys.ts'
import {
  ConfigError,
  type Env,
  natsVariables,
  readConfig,
  variables,
} from '#shared/io/process/config.ts'
import { tracingVariables } from '#shared/io/tracing/tracing.ts'

/** What delivery cannot work without. */
export const deliveryKeyVariables = ['WEBHOOK_KEY'] as const

const count = z.coerce.number().int().min(1).max(10_000)

const shape = {
  ...natsVariables,
  POSTGRES_URL: variables.POSTGRES_URL,
  WEBHOOK_KEY: variables.WEBHOOK_KEY,
  WEBHOOK_KEY_PREVIOUS: variables.WEBHOOK_KEY_PREVIOUS,
  /** Deprecated: WEBHOOK_KEY is derived from it. */
  MASTER_KEY: variables.MASTER_KEY.optional(),
  MASTER_KEY_PREVIOUS: variables.MASTER_KEY_PREVIOUS,
  DELIVERY_LISTEN: variables.DELIVERY_LISTEN,
  ...tracingVariables,
  LOG_LEVEL: variables.LOG_LEVEL,
  ALLOW_PRIVATE_WEBHOOKS: variables.ALLOW_PRIVATE_WEBHOOKS,
  WEBHOOK_ALLOW_NETWORKS: variables.WEBHOOK_ALLOW_NETWORKS,
  PARENT_PID: variables.PARENT_PID,
  /** Webhook requests in flight in this process; at most half of them are retries. */
  DELIVERY_CONCURRENCY: count.default(deliveriesInFlightMax),
  /** The same of one tenant. */
  DELIVERY_TENANT_CONCURRENCY: count.default(deliveriesInFlightPerTenantMax),
} as const

export type DeliveryConfig = z.output<z.ZodObject<typeof shape>>

/** @throws ConfigError with every fault */
export function readDeliveryConfig(env: Env): DeliveryConfig {
  const config = readConfig(shape, env)
  requireKeys(config, deliveryKeyVariables)
  if (config.DELIVERY_TENANT_CONCURRENCY > config.DELIVERY_CONCURRENCY) {
    throw new ConfigError(['DELIVERY_TENANT_CONCURRENCY must not be above DELIVERY_CONCURRENCY'])
  }
  return config
}
