import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { FileRefusedError, readBoundedFile, writeFileAtomic } from '../lib/index.ts';
import type { McpServerSettings } from '../protocol/index.ts';
import { LockedFileError, whileLocked } from './lock-file.ts';
import { filesOfServer } from './server-files.ts';

/** An MCP server that an editor brings to a workspace. */
export interface EditorServer {
  /** Name that the editor reports. */
  readonly editor: string;
  /** Canonical path. */
  readonly workspace: string;
  readonly settings: McpServerSettings;
}

const Answer = v.object({
  editor: v.string(),
  workspace: v.string(),
  /** Salt that protects short secrets in the hash from guessing. */
  salt: v.string(),
  /** Hash of the settings and of the files of the workspace that they name. */
  hash: v.string(),
  answer: v.picklist(['always', 'never']),
  answeredAt: v.pipe(v.string(), v.isoTimestamp()),
});
type Answer = v.InferOutput<typeof Answer>;

const Answers = v.object({ version: v.literal(1), answers: v.array(Answer) });

/** Most answers in the file; the oldest are dropped. */
const maxAnswers = 1_000;
const maxBytes = 1_048_576;

/** File in the home with the user's answers about MCP servers of editors. */
const fileOf = (home: string): string => join(home, 'editor-servers.json');

/** Error for an answer that cannot be stored. The message is meant for the user. */
export class EditorServersError extends Error {
  override readonly name = 'EditorServersError';
}

/** The user's lasting answer about a server; undefined: ask the user. A damaged file allows nothing. */
export function editorServerAnswer(home: string, server: EditorServer): Answer['answer'] | undefined {
  const { editor, workspace } = server;
  return read(home).findLast(
    (each) => each.editor === editor && each.workspace === workspace && each.hash === hashOf(server, each.salt),
  )?.answer;
}

/** Stores a lasting answer. @throws EditorServersError */
export function storeEditorServerAnswer(home: string, server: EditorServer, answer: Answer['answer']): void {
  const { editor, workspace } = server;
  const salt = randomBytes(16).toString('base64url');
  const answeredAt = new Date().toISOString();
  const added = { editor, workspace, salt, hash: hashOf(server, salt), answer, answeredAt };
  change(home, (answers) => [...answers, added].slice(-maxAnswers));
}

/** Removes all answers about a workspace. @returns whether any answer existed @throws EditorServersError */
export function forgetEditorServers(home: string, workspace: string): boolean {
  if (!read(home).some((each) => each.workspace === workspace)) return false;
  change(home, (answers) => answers.filter((each) => each.workspace !== workspace));
  return true;
}

function hashOf(server: EditorServer, salt: string): string {
  const { settings, workspace } = server;
  const [what, values] =
    settings.transport === 'stdio'
      ? [[settings.command, settings.args], settings.env]
      : [[settings.url], settings.httpHeaders];
  const sorted = Object.entries(values).sort(([one], [other]) => (one < other ? -1 : 1));
  const files = [...filesOfServer(settings, workspace)];
  return createHash('sha256')
    .update(JSON.stringify([salt, settings.transport, what, sorted, files]))
    .digest('base64url');
}

function read(home: string): readonly Answer[] {
  try {
    const text = readBoundedFile(fileOf(home), { maxBytes });
    const parsed = text === undefined ? undefined : v.safeParse(Answers, JSON.parse(text));
    return parsed?.success ? parsed.output.answers : [];
  } catch (error) {
    if (error instanceof FileRefusedError || error instanceof SyntaxError) return [];
    throw error;
  }
}

function change(home: string, work: (answers: readonly Answer[]) => readonly Answer[]): void {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const file = fileOf(home);
  try {
    whileLocked(file, () => {
      writeFileAtomic(file, `${JSON.stringify({ version: 1, answers: work(read(home)) }, null, 2)}\n`);
    });
  } catch (error) {
    if (error instanceof LockedFileError || error instanceof FileRefusedError) {
      throw new EditorServersError(error.message);
    }
    throw error;
  }
}
