/** A connection as the REST API, webhooks and the console show it: without the full address. */
import { z } from 'zod'
import type { EventConnection } from './event-connection.ts'

export const connectionSchema = z
  .object({
    country: z
      .string()
      .nullable()
      .meta({
        description: 'ISO 3166-1 alpha-2; null when no database knows it.',
        examples: ['DE'],
      }),
    asn: z
      .int()
      .nullable()
      .meta({
        description: 'The number of the network’s operator; null when no database knows it.',
        examples: [64500],
      }),
    organization: z
      .string()
      .nullable()
      .meta({
        description: 'The name of the operator; null when no database knows it.',
        examples: ['Example Hosting Ltd'],
      }),
    network: z.string().meta({
      description: 'The network of the client’s address: /24 of IPv4, /48 of IPv6.',
      examples: ['203.0.113.0/24', '2001:db8:7::/48'],
    }),
    kinds: z.array(z.string()).meta({
      description:
        'Those of `tor`, `vpn`, `hosting`, `proxy`, `relay` and `mobile` that apply. New ones may be added.',
    }),
  })
  .meta({ description: 'What is known of the network that a request came from.' })
  .meta({ id: 'Connection' })
export type Connection = z.output<typeof connectionSchema>

/** What is shown of the connection in the head of an event; null where nothing was measured. */
export const toShownConnection = (connection: EventConnection | undefined): Connection | null =>
  connection === undefined
    ? null
    : {
        country: connection.country ?? null,
        asn: connection.asn ?? null,
        organization: connection.organization ?? null,
        network: connection.network,
        kinds: connection.kinds ?? [],
      }

/** The schema of a member that may have none. */
export const toConnectionField = (ofWhat: string) =>
  connectionSchema.nullable().meta({
    description: `${ofWhat} Null where nothing was measured: of an address that is not of the internet, without network data, and before there was any.`,
  })
