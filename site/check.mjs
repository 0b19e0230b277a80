// Follows every link and image of the built site and fails if one is dead.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

const dist = new URL('dist', import.meta.url).pathname
const files = readdirSync(dist, { recursive: true }).filter((f) => f.endsWith('.html') && f !== '404.html')
const text = Object.fromEntries(files.map((f) => [f, readFileSync(join(dist, f), 'utf8')]))

// find returns the file that a server sends for a path.
function find(path) {
  return [path, path + '.html', join(path, 'index.html')].find((p) => existsSync(join(dist, p)) && statSync(join(dist, p)).isFile())
}

let links = 0
const dead = []
for (const [file, html] of Object.entries(text)) {
  for (const [, attribute, raw] of html.matchAll(/\s(href|src)="([^"]*)"/g)) {
    const url = decodeURIComponent(raw.replaceAll('&amp;', '&'))
    if (/^[a-z]+:/.test(url)) continue
    links++
    const [path, anchor] = url.split('#')
    const target = path === '' ? file : find(path.startsWith('/') ? path.slice(1) : join(dirname(file), path))
    const lost = target === undefined || (anchor && text[target] && !text[target].includes(`id="${anchor}"`))
    if (lost) dead.push(`${file}: ${attribute} ${url}`)
  }
}
if (dead.length > 0 || links < 1000) {
  console.error([...new Set(dead)].join('\n'), `\n${links} links, ${dead.length} dead`)
  process.exit(1)
}
console.log(`${files.length} pages, ${links} links, none dead`)
