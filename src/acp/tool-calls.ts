import { isAbsolute, join } from 'node:path';
import type { ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import { defaults } from '../protocol/index.ts';

/** A tool call as editors show it. */
export interface ShownCall {
  readonly title: string;
  readonly kind: ToolKind;
  readonly locations: ToolCallLocation[];
  readonly content: ToolCallContent[];
  /** The arguments; the model's own text when it is not JSON. */
  readonly rawInput: unknown;
}

type Words = Readonly<Record<string, unknown>>;

interface Shape {
  readonly kind: ToolKind;
  readonly title: (args: Words) => string;
  readonly isFile?: true;
  readonly diff?: (args: Words) => { readonly oldText: string | null; readonly newText: string } | undefined;
}

/** Arguments come as the model wrote them: any of its names for a thing will do. */
function word(args: Words, ...names: string[]): string {
  for (const name of names) if (typeof args[name] === 'string') return args[name];
  return '';
}

const pathOf = (args: Words): string => word(args, 'path', 'file_path', 'filePath', 'file');
const oldText = (args: Words): string => word(args, 'oldText', 'old_text', 'oldString', 'old_string');
const newText = (args: Words): string => word(args, 'newText', 'new_text', 'newString', 'new_string');

/** Kind of each tool in the protocol, by its name. */
const shapes: Readonly<Record<string, Shape>> = {
  ReadFile: { kind: 'read', isFile: true, title: (args) => `Read ${pathOf(args)}` },
  WriteFile: {
    kind: 'edit',
    isFile: true,
    title: (args) => `Write ${pathOf(args)}`,
    diff: (args) => ({ oldText: null, newText: word(args, 'content', 'contents', 'text') }),
  },
  EditFile: {
    kind: 'edit',
    isFile: true,
    title: (args) => `Edit ${pathOf(args)}`,
    diff: (args) => ({ oldText: oldText(args), newText: newText(args) }),
  },
  GrepFiles: { kind: 'search', title: (args) => `Search for ${word(args, 'pattern', 'query')}` },
  FindFiles: { kind: 'search', title: (args) => `Find ${word(args, 'pattern', 'glob')}` },
  Exec: { kind: 'execute', title: (args) => word(args, 'command', 'cmd') },
  WebFetch: { kind: 'fetch', title: (args) => `Fetch ${word(args, 'url')}` },
  WebSearch: { kind: 'search', title: (args) => `Search the web for ${word(args, 'query')}` },
  SpawnSubagent: {
    kind: 'think',
    title: (args) => `Sub-agent: ${word(args, 'label', 'description', 'task', 'prompt')}`,
  },
};

const Arguments = v.record(v.string(), v.unknown());

/** Shows a call of `tool` with these arguments (JSON text, perhaps broken). */
export function showCall(tool: string, argumentText: string, workspacePath: string): ShownCall {
  const rawInput = parsed(argumentText);
  const shape = shapes[tool];
  const args = v.is(Arguments, rawInput) ? rawInput : {};
  const path = shape?.isFile ? pathOf(args) : '';
  const absolute = path === '' || isAbsolute(path) ? path : join(workspacePath, path);
  const line = args['offset'];
  const title = oneLine(shape?.title(args) ?? '');
  const diff = absolute === '' ? undefined : shape?.diff?.(args);
  return {
    title: title === '' ? tool : title,
    kind: shape?.kind ?? 'other',
    locations: absolute === '' ? [] : [{ path: absolute, ...(isLine(line) && { line }) }],
    content: diff && isSmall(diff.oldText) && isSmall(diff.newText) ? [{ type: 'diff', path: absolute, ...diff }] : [],
    rawInput,
  };
}

const isLine = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value > 0;
const isSmall = (text: string | null): boolean => text === null || text.length <= defaults.acp.contentChars;

function parsed(text: string): unknown {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    // The tool will report the problem; here it is only shown.
    return text;
  }
}

function oneLine(text: string): string {
  const [first = ''] = text.trim().split('\n');
  return first.length > 120 ? `${first.slice(0, 119)}…` : first;
}
