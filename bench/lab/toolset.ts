/** Finds the tool of any harness for a step of the model, by the names and parameters that the harness offers. */
import { join } from 'node:path';
import * as v from 'valibot';
import type { Move } from './task.ts';

const Parameter = v.looseObject({
  type: v.optional(v.union([v.string(), v.array(v.string())])),
  description: v.optional(v.string(), ''),
});
type Parameter = v.InferOutput<typeof Parameter>;

/** A tool as a chat completions request offers it. */
export const OfferedTool = v.object({
  function: v.object({
    name: v.string(),
    description: v.optional(v.string(), ''),
    // A tool without parameters may leave them out.
    parameters: v.optional(
      v.looseObject({
        properties: v.optional(v.record(v.string(), Parameter), {}),
        required: v.optional(v.array(v.string()), []),
      }),
      {},
    ),
  }),
});
export type OfferedTool = v.InferOutput<typeof OfferedTool>['function'];

export interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

const names = {
  run: /^(?:exec|bash|shell|terminal|run_?(?:shell_?)?command|execute(?:_?command)?)$/i,
  read: /^(?:read|read_?file|view)$/i,
  edit: /^(?:edit|edit_?file|str_?replace)$/i,
  write: /^(?:write|write_?file|create_?file)$/i,
} as const;

/** Parameters by their purpose. */
const parameters = {
  command: /^(?:command|cmd)$/i,
  path: /^(?:path|file|file_?path|absolute_?path)$/i,
  old: /^old_?(?:text|string|str)$/i,
  new: /^new_?(?:text|string|str)$/i,
  content: /^(?:content|text)$/i,
  edits: /^edits$/i,
  limit: /^timeout/i,
  from: /^offset$/i,
  lines: /^limit$/i,
  background: /^(?:is_?)?(?:run_?in_?)?background$/i,
} as const;
type Purpose = keyof typeof parameters;

class Offered {
  readonly #tool: OfferedTool;
  readonly #workspace: string;

  constructor(tools: readonly OfferedTool[], role: keyof typeof names, workspace: string) {
    const tool = tools.find(({ name }) => names[role].test(name));
    if (tool === undefined) throw new Error(`no tool to ${role} among ${tools.map(({ name }) => name).join(', ')}`);
    this.#tool = tool;
    this.#workspace = workspace;
  }

  #named(purpose: Purpose): [string, Parameter] | undefined {
    return Object.entries(this.#tool.parameters.properties).find(([name]) => parameters[purpose].test(name));
  }

  has(purpose: Purpose): boolean {
    return this.#named(purpose) !== undefined;
  }

  /** The value of a parameter in its form: absolute paths and seconds where the harness asks for them. */
  #formed(purpose: Purpose, description: string, value: unknown): unknown {
    if (purpose === 'path' && /must be absolute|absolute path/i.test(description))
      return join(this.#workspace, String(value));
    if (purpose === 'limit' && /\bseconds/i.test(description)) return Number(value) / 1000;
    return value;
  }

  call(values: Partial<Record<Purpose, unknown>>): Call {
    const args: Record<string, unknown> = {};
    for (const [purpose, value] of Object.entries(values) as [Purpose, unknown][]) {
      const [name, parameter] = this.#named(purpose) ?? [];
      if (name !== undefined && value !== undefined)
        args[name] = this.#formed(purpose, parameter?.description ?? '', value);
    }
    for (const name of this.#tool.parameters.required) {
      const type = this.#tool.parameters.properties[name]?.type;
      args[name] ??= type === 'boolean' ? false : type === 'number' || type === 'integer' ? 1 : 'A step of the task';
    }
    return { name: this.#tool.name, arguments: args };
  }
}

/** Names of the old and new text within the items of `edits`, in the order old, new. */
function editNames(tool: OfferedTool): readonly [string, string] {
  const edits = Object.entries(tool.parameters.properties).find(([name]) => parameters.edits.test(name))?.[1];
  const items = edits?.['items'] as { properties?: Record<string, unknown> } | undefined;
  const inner = Object.keys(items?.properties ?? {});
  const named = (pattern: RegExp) => inner.find((name) => pattern.test(name));
  return [named(parameters.old) ?? 'oldText', named(parameters.new) ?? 'newText'];
}

/**
 * The calls for a step: one, or several where a harness takes one edit a call.
 * @throws when the harness offers no tool for it
 */
export function callsFor(move: Move, tools: readonly OfferedTool[], workspace: string): readonly Call[] {
  const offered = (role: keyof typeof names) => new Offered(tools, role, workspace);
  switch (move.kind) {
    case 'run':
      return [offered('run').call({ command: move.command, limit: move.limitMs })];
    case 'serve': {
      const tool = offered('run');
      if (tool.has('background')) return [tool.call({ command: move.command, background: true })];
      return [tool.call({ command: `nohup ${move.command} > /dev/null 2>&1 &` })];
    }
    case 'read':
      return [offered('read').call({ path: move.path, from: move.from, lines: move.lines })];
    case 'write':
      return [offered('write').call({ path: move.path, content: move.content })];
    case 'edit': {
      const tool = offered('edit');
      const single = tool.has('old');
      if (single && (move.edits.length === 1 || !tool.has('edits')))
        return move.edits.map((edit) => tool.call({ path: move.path, old: edit.old, new: edit.new }));
      const found = tools.find(({ name }) => names.edit.test(name));
      const [before, after] = found === undefined ? ['oldText', 'newText'] : editNames(found);
      const edits = move.edits.map((edit) => ({ [before]: edit.old, [after]: edit.new }));
      return [tool.call({ path: move.path, edits })];
    }
  }
}
