import { createHash } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { ensurePrivateDirectory, readJson, writeFileAtomic } from '../../../lib/index.ts';
import { MoveBundle, type MovePart, moveParts, movePieceBytes } from '../../../protocol/index.ts';

const fileNames: Readonly<Record<MovePart, string>> = { conversation: 'conversation.jsonl', files: 'files.bin' };
const bundleFile = 'bundle.json';
const trashSuffix = '.removed';
/** Unfinished moves of one agent server, and the age at which the parts of an abandoned one are deleted. */
const [maxUnfinished, abandonedMs] = [20, 7 * 86_400_000];

/** Parts of one move at one end, in a private directory. Their description is written last at the source, and first at the target. */
export class MoveParts {
  readonly #directory: string;

  /** @param root directory of all moves */
  constructor(root: string, moveId: string) {
    this.#directory = join(root, moveId);
  }

  get bundle(): MoveBundle | undefined {
    const read = readJson(join(this.#directory, bundleFile), MoveBundle);
    return read.kind === 'ok' ? read.value : undefined;
  }

  /** Bytes of each part. */
  get sizes(): Record<MovePart, number> {
    const sizeOf = (part: MovePart) => statSync(this.file(part), { throwIfNoEntry: false })?.size ?? 0;
    return { conversation: sizeOf('conversation'), files: sizeOf('files') };
  }

  file(part: MovePart): string {
    return join(this.#directory, fileNames[part]);
  }

  /** Begins with an empty directory. */
  begin(): void {
    this.remove();
    ensurePrivateDirectory(this.#directory);
  }

  describe(bundle: MoveBundle): void {
    writeFileAtomic(join(this.#directory, bundleFile), JSON.stringify(bundle));
  }

  /** Describes written parts. */
  async measure(facts: Pick<MoveBundle, 'head' | 'entries'>): Promise<MoveBundle> {
    const sha256 = { conversation: '', files: '' };
    for (const part of moveParts) sha256[part] = await digestOf(this.file(part));
    return v.parse(MoveBundle, { version: 1, ...facts, bytes: this.sizes, sha256 });
  }

  /** First part whose content differs from its description; undefined: both are complete. */
  async damaged({ sha256 }: MoveBundle): Promise<MovePart | undefined> {
    for (const part of moveParts) {
      const file = this.file(part);
      if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
      if ((await digestOf(file)) !== sha256[part]) return part;
    }
    return undefined;
  }

  read(part: MovePart, offset: number): Buffer {
    const fd = openSync(this.file(part), 'r');
    try {
      const bytes = Buffer.allocUnsafe(movePieceBytes);
      return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, offset));
    } finally {
      closeSync(fd);
    }
  }

  append(part: MovePart, bytes: Uint8Array): void {
    const fd = openSync(this.file(part), 'a', 0o600);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
    } finally {
      closeSync(fd);
    }
  }

  /** Deletes the parts at once: a kill leaves no half of them under this name. */
  remove(): void {
    const trash = `${this.#directory}${trashSuffix}`;
    rmSync(trash, { recursive: true, force: true });
    if (existsSync(this.#directory)) renameSync(this.#directory, trash);
    rmSync(trash, { recursive: true, force: true });
  }
}

/** Deletes the parts of abandoned moves. @returns whether another move has room */
export function hasRoom(root: string): boolean {
  if (!existsSync(root)) return true;
  let moves = 0;
  for (const name of readdirSync(root)) {
    const path = join(root, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (name.endsWith(trashSuffix) || age > abandonedMs) rmSync(path, { recursive: true, force: true });
    else moves += 1;
  }
  return moves < maxUnfinished;
}

/** SHA-256 of a file, which is durable afterwards. */
async function digestOf(file: string): Promise<string> {
  const fd = openSync(file, 'r+');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
