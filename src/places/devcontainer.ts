import { join } from 'node:path';
import { parse } from 'jsonc-parser';
import * as v from 'valibot';
import { readBoundedFile } from '../lib/index.ts';
import { PlaceRequest } from '../protocol/index.ts';

const Devcontainer = v.object({ image: PlaceRequest.entries.image });

/**
 * Image that the `devcontainer.json` of a workspace names; undefined without one, and where the file is damaged or builds its image. Every
 * other key is left out. Only for a trusted workspace: the image decides the programs.
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
    // A link, or another user's file: it decides nothing.
    return undefined;
  }
}
