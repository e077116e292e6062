/**
 * Who did something to an alert, as the keys of a tenant see it: an operator by an id that says
 * nothing of the person and stays the same, a key of the tenant by its name. Emails of operators
 * are for operators.
 */
import { z } from 'zod'

export const actorSchema = z
  .object({
    kind: z.enum(['operator', 'api_key', 'service']).meta({
      description: 'New kinds may be added.',
    }),
    id: z
      .string()
      .nullable()
      .meta({
        description:
          'Of an operator `opr_...`, whom only the operators of the service can name; of an API key its name. Null where there is none.',
        examples: ['opr_8Tz1bXo0Q1m8pC0nY2vJ4w', 'case-tool'],
      }),
  })
  .meta({ description: 'Who did it: an operator of the service, or an API key of the tenant.' })
  .meta({ id: 'Actor' })
export type Actor = z.output<typeof actorSchema>

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
