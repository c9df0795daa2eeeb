// Runs inside opencode: writes what its sessions do to the spool, as <session>.<pid of opencode>.<unique>.json.
// Whatever goes wrong, opencode must not notice: nothing is printed, nothing is thrown.
import { renameSync, unlinkSync, writeFileSync } from "node:fs"

// As much as is read of one payload, and as much of a message as says something.
const LARGEST = 4 * 1024 * 1024
const LONGEST_MESSAGE = 500

export const mam = async () => {
  const owner = process.env.MAM_SESSION
  const spool = process.env.MAM_SPOOL
  if (!owner || !spool) return {}

  // The parent of each session that a subagent works in, what was said last of each session, and the
  // permissions and questions that nobody has answered yet.
  const parents = new Map()
  const stated = new Map()
  const open = new Map()
  // The session that was spoken in last: another one may still work in the background, and end.
  let current
  let count = 0

  const write = (payload) => {
    let body = JSON.stringify(payload)
    if (Buffer.byteLength(body) > LARGEST) body = JSON.stringify({ ...payload, prompt: undefined })
    // Files of the same millisecond are taken in by name.
    const name = `${owner}.${process.pid}.${Date.now()}-${String(count++).padStart(8, "0")}`
    const hidden = `${spool}/.${name}.tmp`
    try {
      writeFileSync(hidden, body, { mode: 0o600, flag: "wx" })
      renameSync(hidden, `${spool}/${name}.json`)
    } catch {
      unlinkSync(hidden)
    }
  }

  const say = (event, session, facts) => write({ agent: "opencode", event, session, ...facts })

  const root = (session) => {
    for (let depth = 0; parents.has(session) && depth < 100; depth++) session = parents.get(session)
    return session
  }

  // Before anything was said, whichever session does something is the one that was resumed. A subagent may be
  // spoken to before it is known for one.
  const isCurrent = (session) => !current || session === root(current)

  // A subagent asks in the name of the session that it works for.
  const ask = (kind, its) => {
    const session = root(its.sessionID)
    open.set(its.id, { kind, session })
    if (isCurrent(session)) say("asked", session, { waiting_for: kind })
  }

  const reply = (its) => {
    const session = root(its.sessionID)
    open.delete(its.requestID)
    const left = [...open.values()].filter((one) => one.session === session)
    if (isCurrent(session)) say("replied", session, { waiting_for: left.pop()?.kind })
  }

  const cut = (text) => (typeof text === "string" ? text.slice(0, LONGEST_MESSAGE) : undefined)

  // The state is announced many times in a turn; only a change is news.
  const state = (session, status) => {
    if (parents.has(session) || !isCurrent(session)) return
    if (status.type === "idle") open.clear()
    const key = status.type === "retry" ? `retry ${status.attempt}` : status.type
    if (stated.get(session) === key) return
    stated.set(session, key)
    say("session.status", session, {
      status: status.type,
      reason: cut(status.action?.reason),
      message: cut(status.message),
    })
  }

  const learn = (info) => {
    if (info?.id && info.parentID) parents.set(info.id, info.parentID)
  }

  const handle = {
    "session.created": (its) => {
      learn(its.info)
      if (its.info.parentID) return
      current = its.info.id
      say("session.created", its.info.id, { title: cut(its.info.title) })
    },
    "session.updated": (its) => learn(its.info),
    "session.status": (its) => state(its.sessionID, its.status),
    "session.idle": (its) => state(its.sessionID, { type: "idle" }),
    "session.error": (its) => {
      if (!its.sessionID || parents.has(its.sessionID) || !isCurrent(its.sessionID)) return
      stated.delete(its.sessionID)
      say("session.error", its.sessionID, { message: cut(its.error?.data?.message ?? its.error?.name) })
    },
    "permission.asked": (its) => ask("permission", its),
    "permission.replied": reply,
    "question.asked": (its) => ask("question", its),
    "question.replied": reply,
    "question.rejected": reply,
  }

  return {
    event: async ({ event }) => {
      try {
        handle[event.type]?.(event.properties)
      } catch {}
    },
    "chat.message": async (input, output) => {
      try {
        if (parents.has(input.sessionID)) return
        const said = output.parts.filter((part) => part.type === "text" && !part.synthetic)
        current = input.sessionID
        stated.delete(current)
        say("chat.message", input.sessionID, { prompt: said.map((part) => part.text).join("\n") })
      } catch {}
    },
  }
}
