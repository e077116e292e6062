// `npm run build:console`: builds the console's pages unless they are up to date.
import { buildPages } from './build-pages.ts'

const built = await buildPages()
process.stdout.write(built ? 'the pages are built\n' : 'the pages are up to date\n')
