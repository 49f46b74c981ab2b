/** The file tools as the runtime uses them, on real files. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import type { ApprovalNeed, Tool, ToolContext, ToolResult } from '../../../src/agent/tool.ts';
import type { FileToolSettings } from '../../../src/agent/tools/files/index.ts';
import { contextOf } from './run-tool.ts';

export const settings = (overrides: Partial<FileToolSettings> = {}): FileToolSettings => ({
  maxFileBytes: 1_048_576,
  blockedPaths: [],
  protectedDirectories: [],
  ...overrides,
});

/** A workspace with these files, and a directory beside it that is out of bounds. */
export function places(t: Test, files: Readonly<Record<string, string | Uint8Array>> = {}) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-files-')));
  t.teardown(() => rmSync(base, { recursive: true, force: true }));
  const workspace = join(base, 'ws');
  const outside = join(base, 'outside');
  mkdirSync(join(workspace, '.oratorio'), { recursive: true });
  mkdirSync(outside);
  writeFileSync(join(workspace, '.oratorio', 'config.json'), '{"ApiKey":"sk-own-secret"}');
  const put = (path: string, content: string | Uint8Array) => {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    writeFileSync(join(workspace, path), content);
  };
  for (const [path, content] of Object.entries(files)) put(path, content);
  return { base, workspace, outside, put, at: (path: string) => join(workspace, path) };
}

export interface Reviewed {
  readonly need: ApprovalNeed | undefined;
  readonly result: ToolResult;
}

/** Parses the arguments, gets the approval that they need, and runs the tool. */
export async function review(
  tool: Tool,
  args: unknown,
  workspacePath: string,
  overrides: Partial<ToolContext> = {},
): Promise<Reviewed> {
  const parsed = tool.parse(args);
  if (!parsed.ok) throw new Error(parsed.error);
  const context = contextOf({ workspacePath, ...overrides });
  const need = await tool.approvalFor(parsed.args, context);
  return { need, result: await tool.run(parsed.args, context) };
}

/** Text of the tool for the model. */
export const resultText = async (tool: Tool, args: unknown, workspacePath: string): Promise<string> =>
  (await review(tool, args, workspacePath)).result.text;

/**
 * A process that runs `body` over and over, as fast as it can: the other side of a race.
 *
 * @param body CommonJS, has `fs`
 * @param repair what to do when we came in its way
 * @returns how to end it; resolves to how often it ran to its end
 */
export async function adversary(t: Test, body: string, repair = ''): Promise<() => Promise<number>> {
  const program = `
    const fs = require('node:fs');
    let rounds = 0, isOver = false, isReady = false;
    process.stdin.on('end', () => { isOver = true; }).resume();
    const loop = () => {
      for (let n = 0; n < 50; n += 1) {
        try { ${body}; rounds += 1; } catch { try { ${repair} } catch {} }
      }
      if (!isReady && rounds > 0) { isReady = true; process.stdout.write('ready\\n'); }
      if (isOver) process.stdout.write('rounds ' + rounds); else setImmediate(loop);
    };
    loop();`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  await once(child.stdout, 'data');
  return async () => {
    child.stdin.end();
    await once(child, 'close');
    return Number(/rounds (\d+)/.exec(said)?.[1]);
  };
}
