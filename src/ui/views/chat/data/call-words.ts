import { visible } from '../../../../lib/browser.ts';
import { cutText } from '../../../../protocol/browser.ts';
import type { ToolRow } from './rows.ts';

type Words = Readonly<Record<string, unknown>>;

/** Requested change of one file. `before` is null for a file that is written whole. */
export interface FileChange {
  readonly path: string;
  readonly before: string | null;
  readonly after: string;
}

/** Words of a call: its action and the target. */
export interface CallWords {
  readonly verb: string;
  readonly target: string;
  readonly change: FileChange | null;
}

/** Text of the first of these arguments that exists: models use different names. */
function word(args: Words, ...names: string[]): string {
  for (const name of names) {
    const value = args[name];
    if (typeof value === 'string') return value;
  }
  return '';
}

const pathOf = (args: Words): string => word(args, 'path', 'file_path', 'filePath', 'file');

const shapes: Readonly<Record<string, readonly [verb: string, target: (args: Words) => string]>> = {
  ReadFile: ['Read', pathOf],
  WriteFile: ['Write', pathOf],
  EditFile: ['Edit', pathOf],
  GrepFiles: ['Search for', (args) => word(args, 'pattern', 'query')],
  FindFiles: ['Find', (args) => word(args, 'pattern', 'glob')],
  Exec: ['Run', (args) => word(args, 'command', 'cmd')],
  ExecOutput: ['Read the output of', (args) => word(args, 'processId', 'id')],
  ExecInput: ['Write to', (args) => word(args, 'processId', 'id')],
  ExecStop: ['Stop', (args) => word(args, 'processId', 'id')],
  WebFetch: ['Fetch', (args) => word(args, 'url')],
  WebSearch: ['Search the web for', (args) => word(args, 'query')],
  SpawnSubagent: ['Ask a sub-agent:', (args) => word(args, 'label', 'description', 'task', 'prompt')],
  UpdatePlan: ['Plan', () => ''],
};

/** Longest target on the one line of a card. */
const targetChars = 300;

type Call = Pick<ToolRow, 'tool' | 'argumentsText'>;

/** Last computed words of calls, because arguments may hold a whole file. */
const known = new WeakMap<Call, { readonly of: Call; readonly words: CallWords }>();

/** Describes a call. Shows arguments that are not JSON unchanged. */
export function wordsOf(call: Call): CallWords {
  const { tool, argumentsText } = call;
  const last = known.get(call);
  if (last && last.of.tool === tool && last.of.argumentsText === argumentsText) return last.words;
  const words = readWords(call);
  known.set(call, { of: { tool, argumentsText }, words });
  return words;
}

function readWords({ tool, argumentsText }: Call): CallWords {
  const args = parsed(argumentsText);
  const [verb, targetOf] = shapes[tool] ?? [tool, () => (args === null ? argumentsText : '')];
  const target = targetOf(args ?? {});
  return { verb, target: visible(cutText(target, targetChars), { multiline: false }), change: changeOf(tool, args) };
}

function changeOf(tool: string, args: Words | null): FileChange | null {
  if (args === null || (tool !== 'WriteFile' && tool !== 'EditFile')) return null;
  const path = pathOf(args);
  if (tool === 'WriteFile') return { path, before: null, after: word(args, 'content', 'contents', 'text') };
  const before = word(args, 'oldText', 'old_text', 'oldString', 'old_string');
  const after = word(args, 'newText', 'new_text', 'newString', 'new_string');
  // Several edits, or other names of arguments: the preview of the agent server shows the change.
  return before === '' && after === '' ? null : { path, before, after };
}

function parsed(text: string): Words | null {
  try {
    const value: unknown = JSON.parse(text === '' ? '{}' : text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Words) : null;
  } catch {
    // The tool reports the problem; the page only shows the arguments.
    return null;
  }
}
