/**
 * `npm run faults -- image [--events 20]` builds deploy/Dockerfile with Podman, on a base image made
 * of Debian and the project's Node, and runs every process of it with the settings of compose.yaml
 * on real servers. It needs root, and podman, mmdebstrap and catatonit of Debian. Exits with 1 when
 * a promise about the image is broken. `podman image prune --all` removes what it keeps for the next
 * run: the layers, some 3 GB.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { print, readOptions, reportBroken, seconds } from '../support/drill.ts'
import { buildBase, buildImage, imageName } from './build-image.ts'
import { judgeContents, readImage } from './image-contents.ts'
import { findMissing } from './podman.ts'
import { createPromises } from './promises.ts'
import { runImage } from './run-image.ts'

const read = (file: string) =>
  readFileSync(fileURLToPath(new URL(`../../../${file}`, import.meta.url)), 'utf8')

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { events } = readOptions(args, { events: 20 })
  const missing = findMissing()
  if (missing !== null) {
    print(missing)
    process.exitCode = 1
    return
  }
  const { tell, broken } = createPromises()
  const version = /^ARG NODE_IMAGE=node:([\d.]+)-slim$/m.exec(read('deploy/Dockerfile'))![1]!
  print('building the base image, when there is none, and the image: minutes at the first time')
  const startMs = performance.now()
  const base = await buildBase(version)
  await buildImage(base)
  const image = await readImage(imageName, base)
  print(`built in ${seconds(performance.now() - startMs)}: ${Math.round(image.bytes / 1e6)} MB`)
  for (const [promise, wrong] of judgeContents(image, read('package-lock.json'))) {
    tell(`the image ${promise}`, wrong)
  }
  await runImage({ image: imageName, healthcheck: image.healthcheck, events, tell })
  reportBroken(broken)
}
