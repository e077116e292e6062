/**
 * Processes of this release and of the recorded one run side by side during an upgrade and after a
 * rollback: each reads what the other writes. `test/releases/README.md` has what to do when a
 * change is refused.
 */
import { describe, expect, it } from 'vitest'
import { readProven } from '#shared/io/tenants/directory/directory-entries.ts'
import { createTenantCopy } from '#shared/io/tenants/directory/tenant-copy.ts'
import { exceptAccepted } from '../../releases/accepted.ts'
import { compareSchemas, findRevoked } from '../../releases/compare.ts'
import { formats } from '../../releases/formats.ts'
import { directory, sealer, toEntry } from '../../releases/framing.ts'
import {
  type RecordedFormat,
  readConstants,
  readPermissions,
  toJsonSchema,
} from '../../releases/present.ts'
import constants from '../../releases/recorded/constants.json' with { type: 'json' }
import recordedFormats from '../../releases/recorded/formats.json' with { type: 'json' }
import permissions from '../../releases/recorded/permissions.json' with { type: 'json' }

const recorded = Object.entries(recordedFormats as unknown as Record<string, RecordedFormat>)

describe.each(recorded)('%s', (name, { schema, key, value, text }) => {
  const present = formats[name]!

  it('is the same in both releases, apart from more optional members', () => {
    const differences = compareSchemas(schema, toJsonSchema(present.schema), name)
    expect(exceptAccepted(differences)).toEqual([])
  })

  it('of the recorded release is read completely', () => {
    expect(present.read(text, key)).toMatchObject(value as object)
  })

  it('is written under the same key, with the same proof and headers', async () => {
    expect(present.key(value as never)).toBe(key)
    expect(await present.write(value as never)).toBe(text)
  })
})

describe('an edge', () => {
  it('serves a tenant that a console of the recorded release wrote', () => {
    const faults: string[] = []
    const copy = createTenantCopy({
      opener: sealer,
      telemetryStreams: 2,
      nowMs: () => 0,
      onFault: (fault) => faults.push(fault),
      previous: () => undefined,
    })
    const [tenant, shard, synced, policy] = (
      ['tenant entry', 'list shard', 'synced entry', 'policy document'] as const
    ).map((name) => recordedFormats[name])
    const read = ({ key, text }: { key: string; text: string }) =>
      readProven(directory, toEntry(key, text))?.value
    copy.setTenant('acme', read(tenant!))
    copy.setLists('acme', '0', read(shard!))
    copy.setPolicy(policy!.key.replace('policy.', ''), JSON.parse(policy!.text))
    copy.setSynced(read(synced!))
    expect(faults).toEqual([])
    expect(copy.synced()).toBe(true)
    const served = copy.tenants.get('acme')!
    expect(served).toMatchObject({
      fault: null,
      status: 'active',
      limiter: { rate: { perSecond: 10, burst: 20 } },
      byteLimiter: { rate: { perSecond: 1_000, burst: 2_000 } },
      undecidedShare: 0.5,
    })
    expect(served.key?.export().toString()).toBe('the present secret')
    expect(served.retired?.key.export().toString()).toBe('the retired secret')
    expect(served.lists.usable()).toBe(true)
    expect(served.lists.find('device', 'phone-1')).toMatchObject([{ list: 'deny' }])
  })
})

describe('a process of the recorded release', () => {
  it('names, derives and stores values as this one does', () => {
    expect(readConstants()).toMatchObject(constants)
  })

  it('keeps its permissions in each store', () => {
    expect(exceptAccepted(findRevoked(permissions, readPermissions(), ''))).toEqual([])
  })
})
