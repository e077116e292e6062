/**
 * The delivery process's operations on the deliveries of one Postgres. Each is a function in a file
 * of its own beside this one.
 */
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { claimDeliveries } from './claim-deliveries.ts'
import { countDue, findDueQueues } from './find-due-deliveries.ts'
import { findFailingWebhooks } from './find-failing-webhooks.ts'
import { readWebhooks } from './read-webhooks.ts'
import { recordOutcomes, switchFailingOff } from './record-outcomes.ts'
import { extendSecretLease } from './webhook-secret-lease.ts'

export type DeliveryStore = ReturnType<typeof createDeliveryStore>

export const createDeliveryStore = (postgres: Postgres) => ({
  claimDeliveries: bind(postgres, claimDeliveries),
  findDueQueues: bind(postgres, findDueQueues),
  countDue: bind(postgres, countDue),
  findFailingWebhooks: bind(postgres, findFailingWebhooks),
  readWebhooks: bind(postgres, readWebhooks),
  extendSecretLease: bind(postgres, extendSecretLease),
  recordOutcomes: bind(postgres, recordOutcomes),
  switchFailingOff: bind(postgres, switchFailingOff),
})

const bind =
  <Args extends unknown[], Result>(
    postgres: Postgres,
    operation: (db: Postgres, ...args: Args) => Result,
  ) =>
  (...args: Args): Result =>
    operation(postgres, ...args)
