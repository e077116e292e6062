import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { choosePort, isPortFree } from '../../../deploy/local/stack/ports.ts'

/** The port that another process chooses when it prefers this one. */
function chooseElsewhere(preferred: number): number {
  const script = `import { choosePort } from './deploy/local/stack/ports.ts'
    process.stdout.write(String(await choosePort({ preferred: ${preferred} })))`
  const args = ['--input-type=module', '--eval', script]
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }))
}

describe.runIf(process.platform === 'linux')('a port that was chosen', () => {
  it('is chosen by no other process before its server listens', async () => {
    const port = await choosePort({})
    expect(await isPortFree(port)).toBe(true)
    const other = chooseElsewhere(port)
    expect(other).toBeGreaterThan(0)
    expect(other).not.toBe(port)
  })

  it('may be chosen again by its owner, and by others once the owner has ended', async () => {
    const port = await choosePort({})
    expect(await choosePort({ preferred: port })).toBe(port)
    const elsewhere = chooseElsewhere(0)
    expect(await choosePort({ preferred: elsewhere })).toBe(elsewhere)
  })
})
