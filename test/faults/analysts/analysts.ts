/** `npm run faults -- analysts`: what an analyst of a server attempts, and what the engine answers. */
import { attempts } from '../../support/analytics/analyst-attempts.ts'
import { createAnalystsRig, toOutcome } from '../../support/analytics/analysts-rig.ts'
import { print } from '../support/drill.ts'

export async function run(): Promise<void> {
  const rig = await createAnalystsRig()
  let failed = 0
  let count = 0
  try {
    for (const [aim, list] of Object.entries(attempts)) {
      print(`\n${aim}`)
      for (const one of list) {
        const got = toOutcome((await rig.runOnServer(one)).text)
        const right = got === one.gets
        count++
        if (!right) failed++
        const line = `${right ? '  ' : '! '}${one.what.padEnd(52)} ${shorten(got)}`
        print(`${line}${right ? '' : `   expected ${one.gets}`}`)
      }
    }
  } finally {
    await rig.close()
  }
  print(`\n${count} attempts, ${failed} with an unexpected result`)
  if (failed > 0) process.exitCode = 1
}

const shorten = (text: string) =>
  text === '' ? 'nothing' : text.slice(0, 160).replaceAll('\n', ' ')
