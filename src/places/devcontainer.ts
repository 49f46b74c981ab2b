import { join } from 'node:path';
import { parse } from 'jsonc-parser';
import * as v from 'valibot';
import { readBoundedFile } from '../lib/index.ts';
import { PlaceRequest } from '../protocol/index.ts';

const Devcontainer = v.object({ image: PlaceRequest.entries.image });

/**
 * Image in the `devcontainer.json` of a workspace; undefined if the file is missing or damaged, or builds its image. Ignores every
 * other key. Call this only for a trusted workspace, because the image decides which programs run.
 */
export function devcontainerImage(workspacePath: string): string | undefined {
  for (const name of ['.devcontainer/devcontainer.json', '.devcontainer.json']) {
    const text = textOf(join(workspacePath, name));
    if (text === undefined) continue;
    const read = v.safeParse(Devcontainer, parse(text));
    return read.success ? read.output.image : undefined;
  }
  return undefined;
}

function textOf(file: string): string | undefined {
  try {
    return readBoundedFile(file);
  } catch {
    // Ignores a symbolic link and another user's file.
    return undefined;
  }
}
