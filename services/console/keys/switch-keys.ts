/**
 * The switch from the form of keys of the release before to the present one: a key for each kind of
 * secret, and signatures in the tenant directory. `di secrets rewrap` begins it, seals and signs
 * everything again, and ends it. It is refused while a process runs that reads the old form only.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { leaseMs } from '#shared/core/base/limits/tenants.ts'
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import {
  changeKeyForm,
  type KnownForm,
  keyFormPollMs,
  listOlderProcesses,
} from '#shared/io/keys/key-form.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { EdgeList } from '#shared/io/tenants/directory/list-edges.ts'

export type SwitchDeps = {
  postgres: Postgres
  keyForm: KnownForm
  listEdges: () => Promise<EdgeList>
}

/** The form that signed entries have in an edge's announcement. */
const signedForm = 2

/**
 * Begins the switch unless it has begun or is done. When it returns, every console writes the
 * present form.
 * @throws Problem older_processes, with the processes that would not understand it
 */
export async function beginSwitch({ postgres, keyForm, listEdges }: SwitchDeps): Promise<void> {
  if ((await keyForm.refresh()) !== 'old') return
  const processes = await listOlderProcesses(postgres)
  const edges = await listOlderEdges(listEdges)
  const older = [...processes, ...edges.map((edgeId) => `edge ${edgeId}`)]
  if (older.length > 0) {
    throw new Problem(
      'older_processes',
      `These run an older release, which cannot read the new form: ${older.join(', ')}. Upgrade ` +
        'them, and repeat the call. Nothing was changed.',
    )
  }
  await changeKeyForm(postgres, { from: 'old', to: 'switching' })
  await keyForm.refresh()
  // The other threads and consoles look every second.
  await pause(2 * keyFormPollMs)
}

/** Ends it, once nothing is left in the old form. */
export async function endSwitch({ postgres, keyForm }: SwitchDeps): Promise<void> {
  await changeKeyForm(postgres, { from: 'switching', to: 'new' })
  await keyForm.refresh()
}

/** Edges that are alive, since they announce themselves within a lease, and read the old form only. */
async function listOlderEdges(listEdges: SwitchDeps['listEdges']): Promise<string[]> {
  const read = async () => {
    try {
      return (await listEdges()).edges
    } catch (error) {
      throw unavailable('The edges cannot be listed. Nothing was changed.', error)
    }
  }
  const isOlder = ({ forms }: { forms?: number[] | undefined }) => !forms?.includes(signedForm)
  const before = await read()
  if (!before.some(isOlder)) return []
  await pause(leaseMs)
  const announcedAt = new Map(before.map((edge) => [edge.edge_id, edge.announced_at]))
  return (await read())
    .filter((edge) => isOlder(edge) && announcedAt.get(edge.edge_id) !== edge.announced_at)
    .map((edge) => edge.edge_id)
}
