// Makes the user of a server the owner of its data folder.
import { chownSync, lchownSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Changes the owner of a folder and of everything in it, unless the user owns it already. */
export function changeOwner(dir: string, { uid, gid }: { uid: number; gid: number }): void {
  if (statSync(dir).uid === uid) return
  // The folder last, so that the next start repeats an interrupted change.
  for (const entry of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    lchownSync(join(dir, entry), uid, gid)
  }
  chownSync(dir, uid, gid)
}
