// `npm run build:client`: builds the client package, by default in `dist/client`.
import { resolve } from 'node:path'
import { buildClient } from './build-client.ts'

const folder = resolve(process.argv[2] ?? 'dist/client')
await buildClient(folder)
process.stdout.write(`the client package is in ${folder}\n`)
