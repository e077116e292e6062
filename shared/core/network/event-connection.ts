/**
 * What the head of an event says of the connection that it came from. It is of an address that was
 * measured: an event from a private address, or to an edge without network data, has none.
 */
import { z } from 'zod'

export const eventConnectionSchema = z.object({
  /** The network that is kept of the address, in CIDR notation: /24 of IPv4, /48 of IPv6. */
  network: z.string(),
  /** The full address under the tenant's own key: 22 characters of base64url. */
  address_hash: z.string(),
  /** The full address, of tenants that keep it. */
  address: z.string().optional(),
  /** ISO 3166-1 alpha-2. */
  country: z.string().optional(),
  /** The number of the network's operator. */
  asn: z.number().int().optional(),
  organization: z.string().optional(),
  /** Of the city, in degrees; both or neither. */
  latitude: z.number().optional(),
  longitude: z.number().optional(),
  /** Those of `networkKinds` that apply; a later edge may know more. */
  kinds: z.array(z.string()).optional(),
})

export type EventConnection = z.infer<typeof eventConnectionSchema>
