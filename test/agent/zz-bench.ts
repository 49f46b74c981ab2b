import { fork } from 'node:child_process';
import { Agent, createServer, request as httpRequest } from 'node:http';
import { OpenAiProvider } from '../../src/agent/providers/openai.ts';
import { DemoProvider } from '../../src/agent/providers/demo.ts';
const chunk = (c: string) => `data: ${JSON.stringify({ id: 'chatcmpl-x', object: 'chat.completion.chunk', created: 1700000000, model: 'm', choices: [{ index: 0, delta: { content: c }, finish_reason: null }] })}\n\n`;
const N = 1000;
if (process.argv[2] === 'server') {
  const parts = Array.from({ length: N }, (_, i) => chunk(` word${i % 10}`));
  const server = createServer((req, res) => {
    req.resume(); req.on('end', () => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      if (req.headers['x-short']||req.url?.includes('short')) { res.write(parts[0]); res.end('data: [DONE]\n\n'); return; }
      let i = 0;
      const step = () => { for (let k = 0; k < 10 && i < N; k++) res.write(parts[i++]!); if (i < N) setImmediate(step); else { res.write(`data: ${JSON.stringify({choices:[{index:0,delta:{},finish_reason:'stop'}]})}\n\n`); res.write(`data: ${JSON.stringify({choices:[],usage:{prompt_tokens:1,completion_tokens:2}})}\n\n`); res.end('data: [DONE]\n\n'); } };
      step();
    });
  });
  server.keepAliveTimeout = 60000;
  server.listen(0, '127.0.0.1', () => process.send!((server.address() as any).port));
} else {
  const child = fork(import.meta.filename, ['server']);
  const port: number = await new Promise((r) => child.once('message', r as any));
  const cpu = async (name: string, n: number, work: () => Promise<unknown>) => {
    for (let i = 0; i < 30; i++) await work();
    const t0 = process.cpuUsage(), w = performance.now();
    for (let i = 0; i < n; i++) await work();
    const c = process.cpuUsage(t0);
    console.log(name, 'cpu us/chunk', ((c.user + c.system) / n / N).toFixed(2), 'wall us/chunk', ((performance.now() - w) * 1000 / n / N).toFixed(2));
  };
  const agent = new Agent({ keepAlive: true });
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true });
  const raw = (path = '/v1/chat/completions', onFirst?: () => void) => new Promise<void>((resolve, reject) => {
    const r = httpRequest({ port, host: '127.0.0.1', method: 'POST', path, agent, headers: { 'content-type': 'application/json', 'content-length': body.length } }, (res) => { let first = true; res.on('data', () => { if (first) { first = false; onFirst?.(); } }); res.on('end', resolve); });
    r.on('error', reject); r.end(body);
  });
  const p = new OpenAiProvider({ endPoint: `http://127.0.0.1:${port}/v1`, apiKey: 'k', model: 'm' });
  const signal = new AbortController().signal;
  const req = { messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }] };
  let n = 0;
  for (let round = 0; round < 3; round++) {
    await cpu('raw http.request   ', 100, () => raw());
    await cpu('provider           ', 100, () => p.stream(req, () => { n++; }, signal));
    await cpu('raw x16   ', 10, () => Promise.all(Array.from({ length: 16 }, () => raw())).then(() => {}));
    await cpu('provider x16 ', 10, () => Promise.all(Array.from({ length: 16 }, () => p.stream(req, () => { n++; }, signal))));
  }
  const ps = new OpenAiProvider({ endPoint: `http://127.0.0.1:${port}/short`, apiKey: 'k', model: 'm' });
  const lat = async (name: string, work: (first: () => void) => Promise<unknown>) => {
    const xs: number[] = [];
    for (let i = 0; i < 3000; i++) { const s = performance.now(); let f = 0; await work(() => { f ||= performance.now() - s; }); if (i >= 500) xs.push(f); await new Promise(setImmediate); }
    xs.sort((a, b) => a - b); console.log(name, 'first token us p50', (xs[xs.length >> 1]! * 1000).toFixed(0), 'p99', (xs[Math.floor(xs.length * .99)]! * 1000).toFixed(0));
  };
  for (let round = 0; round < 3; round++) {
    await lat('raw     ', (f) => raw('/short', f));
    await lat('provider', (f) => ps.stream(req, (e) => { if (e.type === 'text') f(); }, signal));
  }
  const demo = new DemoProvider({ paceMs: 0 });
  const s = performance.now(); for (let i = 0; i < 2000; i++) await demo.stream(req, () => {}, signal);
  console.log('demo turn us', ((performance.now() - s) * 1000 / 2000).toFixed(0));
  p.close(); ps.close(); agent.destroy(); child.kill();
}
