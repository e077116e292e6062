/** What operators see of the files of network data. */
import { z } from 'zod'
import type { FactColumns } from './network-facts.ts'
import { networkKinds } from './network-list.ts'

/** What a file can give. */
export const networkMembers = [
  'country',
  'coordinates',
  'asn',
  'organization',
  ...networkKinds,
] as const
export type NetworkMember = (typeof networkMembers)[number]

export const networkFileSchema = z.object({
  file: z.string().describe('Its name in the folder.'),
  state: z
    .enum(['in_use', 'older_in_use', 'broken'])
    .describe(
      'in_use: as it is; older_in_use: it is broken, and the one before it is still used; ' +
        'broken: nothing of it is used.',
    ),
  fault: z.string().nullable().describe('What is wrong with it; null when nothing is.'),
  gives: z.array(z.enum(networkMembers)).describe('What it says of addresses.'),
  networks: z.int().nullable().describe('Networks of a list, ranges of a database.'),
  bytes: z.int().nullable(),
  built_at: z.iso
    .datetime()
    .nullable()
    .describe('When its vendor built it; of a list, when it was written.'),
  read_at: z.iso.datetime().nullable().describe('When this process read what is in use.'),
})
export type NetworkFileStatus = z.infer<typeof networkFileSchema>

export const networkDataSchema = z.object({
  is_on: z.boolean().describe('Whether `NETWORK_DATA` names a folder.'),
  data: z.array(networkFileSchema),
})

/** What the facts of a database say of some network. */
export function readHeldMembers(facts: FactColumns): NetworkMember[] {
  const isHeld = {
    country: facts.countries.some((one) => one !== 0),
    coordinates: facts.latitudes.some((one) => !Number.isNaN(one)),
    asn: facts.asns.some((one) => one !== 0),
    organization: facts.nameStarts.length > 1,
  }
  return networkMembers.filter((member) => {
    if (member in isHeld) return isHeld[member as keyof typeof isHeld]
    const bit = networkKinds.indexOf(member as (typeof networkKinds)[number])
    return (facts.heldKinds & (1 << bit)) !== 0
  })
}
