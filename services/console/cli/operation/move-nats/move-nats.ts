/**
 * `di move-nats` moves an installation to other NATS servers, as from one to three. `prepare` gives
 * the new ones the streams and the directory of tenants, so that edges can be moved; `finish` ends
 * the old one's streams, waits until everything in them is decided, and copies the rest.
 */
import { command, group } from '../../commands.ts'
import { finishMove, type MoveFinished } from './finish-move.ts'
import { type MovePrepared, prepareMove } from './prepare-move.ts'

export const moveNats = group('move-nats', 'move to other NATS servers, as from one to three', [
  command(
    'prepare',
    'make the streams and the directory of tenants on the new servers, with a console’s settings',
    [],
    async (context) => context.out(await prepareMove(context), toPreparedText),
  ),
  command(
    'finish',
    'wait until the old servers (NATS_URL) are done, and copy the rest to NATS_TO_URL',
    [],
    async (context) => context.out(await finishMove(context), toFinishedText),
  ),
])

function toPreparedText({ created, tenants }: MovePrepared): string {
  return [
    `The new servers have the streams (${created.length} made now) and ${tenants} tenants.`,
    'Next: restart the edges with the new NATS_URL, one by one, and run `di move-nats finish`.',
  ].join('\n')
}

function toFinishedText({ copied }: MoveFinished): string {
  const counts = Object.entries(copied).map(([stream, count]) => `${stream} ${count}`)
  return [
    `Everything in the old telemetry streams is stored and decided. Copied: ${counts.join(', ')}.`,
    'Next: restart scorers, delivery and console with the new NATS_URL, and stop the old server.',
  ].join('\n')
}
