/**
 * The tools that read, write and search files: ReadFile, WriteFile, EditFile, GrepFiles, FindFiles. Put together by the agent
 * server and given to the runtime. Every path goes through `../paths.ts` and `access.ts` before it is opened, and through
 * `handles.ts` when it is. Never here: who may approve (the tools report which calls need approval), running commands, the network.
 *
 * Limits: a hard link is as good a name of a file as any other; only a hard link of a file that `Permissions.BlockedPaths`
 * names is recognised. Where the operating system has no `/proc/self/fd` (macOS, Windows) a directory exchanged for a symlink
 * in the microseconds of a write can leave an empty file or directory where the symlink leads, and between the last check and
 * the rename it is not noticed. A process that dies in the middle of a write
 * leaves a file `.oratorio-<random>.tmp` behind, and the target file unchanged.
 */
import type { Tool } from '../../tool.ts';
import { createEditFile } from './edit-file.ts';
import { createFindFiles } from './find-files.ts';
import { createGrepFiles } from './grep-files.ts';
import { createReadFile } from './read-file.ts';
import { createSearchEngine } from './search-engine.ts';
import type { FileToolSettings } from './settings.ts';
import { createWriteFile } from './write-file.ts';

export { createEditFile } from './edit-file.ts';
export { createFindFiles } from './find-files.ts';
export { createGrepFiles } from './grep-files.ts';
export { createReadFile } from './read-file.ts';
export type { FileToolSettings } from './settings.ts';
export { createWriteFile } from './write-file.ts';

/** All five. */
export function createFileTools(settings: FileToolSettings): Tool[] {
  const engine = createSearchEngine();
  return [
    createReadFile(settings),
    createWriteFile(settings),
    createEditFile(settings),
    createGrepFiles(settings, engine),
    createFindFiles(settings, engine),
  ];
}
