/**
 * `npm run faults -- analysts`: everything that an analyst tries in order to get out, and what it
 * got, as a table.
 */
import { attempts } from '../../support/analytics/analyst-attempts.ts'
import { createAnalystsRig } from '../../support/analytics/analysts-rig.ts'

export async function run(): Promise<void> {
  const rig = await createAnalystsRig()
  let failed = 0
  let count = 0
  try {
    for (const [aim, list] of Object.entries(attempts)) {
      process.stdout.write(`\n${aim}\n`)
      for (const one of list) {
        const { got } = await rig.attempt(one)
        const right = got === one.gets
        count++
        if (!right) failed++
        const line = `${right ? '  ' : '! '}${one.what.padEnd(52)} ${shorten(got)}`
        process.stdout.write(`${line}${right ? '' : `   expected ${one.gets}`}\n`)
      }
    }
  } finally {
    await rig.close()
  }
  process.stdout.write(`\n${count} attempts, ${failed} that got something else than expected\n`)
  if (failed > 0) process.exitCode = 1
}

const shorten = (text: string) =>
  text === '' ? 'nothing' : text.slice(0, 160).replaceAll('\n', ' ')
