/** The command line's entry, `npm run -s di -- <command>`: its program is in `cli/program.ts`. */
import { keepCompiled } from '#shared/io/process/cache-folder.ts'
import { neverTakeProxy } from '#shared/io/process/direct-calls.ts'

// Before the program, which has twice as much to compile as to do, is loaded.
keepCompiled(process.env)
neverTakeProxy()
const { runProgram } = await import('./cli/program.ts')
await runProgram(process.env)
