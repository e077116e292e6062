/**
 * Who did something to an alert, as the keys of a tenant see it: an operator by an id that says
 * nothing of the person and stays the same, a key of the tenant by its name. Emails of operators
 * are for operators.
 */
import type { Actor } from './actor-schema.ts'

const keyPrefix = 'api-key:'

/** The name under which an API key acts. */
export const toKeyActor = (keyName: string | null): string => `${keyPrefix}${keyName}`

/**
 * @param actor as it is stored: the email of an operator, `admin`, `system`, or a key's
 * @param operatorId of the operator with the email; null when there is none
 */
export function toActor(actor: string, operatorId: string | null): Actor {
  if (actor.startsWith(keyPrefix)) return { kind: 'api_key', id: actor.slice(keyPrefix.length) }
  return { kind: actor === 'system' ? 'service' : 'operator', id: operatorId }
}
