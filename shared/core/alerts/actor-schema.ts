/** Who did something to an alert, in answers of the REST API and in webhooks. */
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
