import type { ModelTool } from '../../model.ts';
import { plainToolName } from '../../printed-call.ts';
import type { Tool } from '../../tool.ts';
import { reviewOf } from '../../tool-schema.ts';

/** Tools of one turn: the server's, and the ones that the caller runs. A name of the caller hides an equal name of the server. */
export class TurnTools {
  readonly #client: Map<string, ModelTool>;
  #server = new Map<string, Tool>();
  #declarations: readonly ModelTool[] = [];
  #bytes = 0;
  #problems: string[] = [];

  constructor(client: readonly ModelTool[] = []) {
    this.#client = new Map(client.flatMap((tool) => this.#reviewed(tool)).map((tool) => [tool.name, tool]));
  }

  /** Sets the tools of the server, before the first request. */
  offer(server: readonly Tool[]): void {
    const offered = server
      .filter(({ name }) => !this.#client.has(name))
      .flatMap((tool) => (tool.source === 'dynamic' ? this.#reviewed(tool) : tool));
    this.#server = new Map(offered.map((tool) => [tool.name, tool]));
    this.#declare();
  }

  /** Stops offering these tools. */
  leaveOut(names: readonly string[]): void {
    if (names.length === 0) return;
    for (const name of names) {
      this.#client.delete(name);
      this.#server.delete(name);
    }
    this.#declare();
  }

  #declare(): void {
    this.#declarations = [...this.#client.values(), ...Array.from(this.#server.values(), asModelTool)];
    this.#bytes = this.#declarations.reduce((bytes, tool) => bytes + toolBytes(tool), 0);
  }

  /** Sentences about tools of clients that are left out or offered in part, each once. */
  takeProblems(): readonly string[] {
    return this.#problems.splice(0);
  }

  /** The tool with a schema that services accept; empty: it has none. */
  #reviewed<T extends ModelTool>(tool: T): T[] {
    const { schema, problems } = reviewOf(tool.inputSchema);
    const [problem] = problems;
    if (problem !== undefined) {
      this.#problems.push(`The tool ${tool.name} is ${schema ? 'offered in part' : 'left out'}: ${problem}.`);
    }
    return schema ? [{ ...tool, inputSchema: schema }] : [];
  }

  isClientTool(name: string): boolean {
    return this.#client.has(name);
  }

  /** Offered name that a model means: `read_file` and `functions.ReadFile` mean `ReadFile`. An ambiguous name stays unchanged. */
  nameFor(name: string): string {
    if (this.#client.has(name) || this.#server.has(name)) return name;
    const meant = this.names.filter((offered) => plainToolName(offered) === plainToolName(name));
    const [only] = meant;
    return only !== undefined && meant.length === 1 ? only : name;
  }

  /** Tool of the server. */
  toolOf(name: string): Tool | undefined {
    return this.#server.get(name);
  }

  /** Names of the tools of the server. */
  get serverNames(): readonly string[] {
    return [...this.#server.keys()];
  }

  get names(): readonly string[] {
    return [...this.#server.keys(), ...this.#client.keys()];
  }

  get declarations(): readonly ModelTool[] {
    return this.#declarations;
  }

  /** Size of the declarations in a request. */
  get bytes(): number {
    return this.#bytes;
  }
}

const declared = new WeakMap<ModelTool, number>();

/** Size of a declaration, measured once. */
function toolBytes(tool: ModelTool): number {
  let bytes = declared.get(tool);
  if (bytes === undefined) {
    bytes = tool.name.length + tool.description.length + JSON.stringify(tool.inputSchema).length;
    declared.set(tool, bytes);
  }
  return bytes;
}

/** Declarations, one per tool: providers recognise a tool by identity. */
const modelTools = new WeakMap<Tool, ModelTool>();

function asModelTool(tool: Tool): ModelTool {
  let known = modelTools.get(tool);
  if (!known) {
    const { name, description, inputSchema } = tool;
    known = { name, description, inputSchema };
    modelTools.set(tool, known);
  }
  return known;
}
