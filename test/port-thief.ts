/** Program of another user that binds the former port of a server, and records the requests it receives. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { canBecomeOther, runAsOther } from './other-user.ts';

export interface Theft {
  readonly pid: number;
  readonly port: number;
  /** Everything that arrived, in order; `text` is the whole request as JSON. */
  readonly requests: readonly { readonly line: string; readonly text: string }[];
  /** Resolves when `count` requests have arrived. */
  until(count: number): Promise<void>;
  close(): Promise<void>;
}

export interface ThiefOptions {
  /** 0: any free one. */
  readonly port: number;
  /** Answers by path, as JSON; `*` for the others; the text OWN_PID becomes its pid. Default: `{}` for everything. */
  readonly answers?: Readonly<Record<string, unknown>>;
  /** Status of the answers; default 200. */
  readonly status?: number;
  /** Passes every request on to this port, Host header included, and its answer back. */
  readonly relayTo?: number;
}

const program = `
const http = require('node:http');
const { port, answers, status, relayTo } = JSON.parse(process.argv[1]);
const server = http.createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text) => { body += text; }).on('end', () => {
    const { method, url, headers } = request;
    console.log(JSON.stringify({ method, url, headers, body }));
    const cross = { 'access-control-allow-origin': '*', 'content-type': 'application/json' };
    if (relayTo) {
      const onward = http.request({ host: '127.0.0.1', port: relayTo, method, path: url, headers, agent: false }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      onward.end(body);
      return;
    }
    const path = url.split('?')[0];
    response.writeHead(status, cross).end(JSON.stringify(answers[path] ?? answers['*'] ?? {}).replace('"OWN_PID"', process.pid));
  });
});
const listen = () => server.listen(port, '127.0.0.1');
server.on('error', (error) => { if (error.code === 'EADDRINUSE') setTimeout(listen, 5); else throw error; });
server.on('listening', () => console.log(JSON.stringify({ port: server.address().port })));
listen();
`;

/** Starts the program; tries until it gets the port. The caller closes it. */
export async function stealPort({ port, answers = {}, status = 200, relayTo }: ThiefOptions): Promise<Theft> {
  const input = JSON.stringify({ port, answers, status, relayTo });
  const child: ChildProcess = canBecomeOther
    ? runAsOther(program, [input])
    : spawn(process.execPath, ['-e', program, input], { stdio: ['ignore', 'pipe', 'inherit'] });
  const requests: { line: string; text: string }[] = [];
  const waiting = new Set<() => void>();
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const listening = Promise.withResolvers<number>();
  if (!child.stdout) throw new Error('the thief has no output');
  createInterface({ input: child.stdout }).on('line', (text) => {
    const said = JSON.parse(text) as { port?: number; method?: string; url?: string };
    if (said.port !== undefined) return listening.resolve(said.port);
    requests.push({ line: `${said.method} ${said.url?.split('?')[0]}`, text });
    for (const check of waiting) check();
  });
  void exited.then(() => listening.reject(new Error('the thief has ended')));
  return {
    pid: child.pid ?? 0,
    port: await listening.promise,
    requests,
    until: (count) =>
      new Promise((resolve) => {
        const check = () => {
          if (requests.length < count) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    async close() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
