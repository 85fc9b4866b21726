// Command bare is the yardstick of `make bench`: the least that a worker for analyze-retry can be. It
// activates, decides by hand and completes over plain gRPC; no log, no metrics, no retries, no stop.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

type input struct {
	ClaimID         string `json:"claimId"`
	SubmissionError string `json:"submissionError"`
	RetryCount      int    `json:"retryCount"`
}

type output struct {
	ShouldRetry         bool      `json:"shouldRetry"`
	RetryCount          int       `json:"retryCount"`
	MaxRetries          int       `json:"maxRetries"`
	RetryReason         string    `json:"retryReason"`
	ErrorClassification string    `json:"errorClassification"`
	OriginalError       string    `json:"originalError"`
	RetryPolicy         string    `json:"retryPolicy"`
	BackoffMinutes      int       `json:"backoffMinutes"`
	BackoffDuration     string    `json:"backoffDuration"`
	NextRetryTime       time.Time `json:"nextRetryTime"`
}

var (
	permanent = []string{"INVALID_PATIENT_DATA", "INSURANCE_EXPIRED", "AUTHORIZATION_DENIED", "DUPLICATE_CLAIM", "INVALID_PROCEDURE_CODE"}
	transient = []string{"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "TEMPORARY_ERROR", "RATE_LIMIT", "SERVER_ERROR", "503", "504"}
)

func main() {
	address := flag.String("addr", "127.0.0.1:26500", "gateway")
	active := flag.Int("active", 50, "jobs asked for at once")
	workers := flag.Int("workers", 50, "jobs answered at once")
	flag.Parse()
	conn, err := grpc.NewClient(*address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	gateway := pb.NewGatewayClient(conn)
	jobs := make(chan *pb.ActivatedJob, *active)
	for range *workers {
		go answerAll(ctx, gateway, jobs)
	}
	for ctx.Err() == nil {
		if err := activate(ctx, gateway, *active, jobs); err != nil && ctx.Err() == nil {
			log.Fatal(err)
		}
	}
}

func activate(ctx context.Context, gateway pb.GatewayClient, active int, jobs chan<- *pb.ActivatedJob) error {
	stream, err := gateway.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type: "analyze-retry", Worker: "bare", Timeout: 10_000, RequestTimeout: 2_000,
		MaxJobsToActivate: int32(max(active-len(jobs), 1)),
		FetchVariable:     []string{"claimId", "submissionError", "retryCount", "lastSubmissionTime"},
	})
	for err == nil {
		var r *pb.ActivateJobsResponse
		if r, err = stream.Recv(); err == nil {
			for _, j := range r.Jobs {
				jobs <- j
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func answerAll(ctx context.Context, gateway pb.GatewayClient, jobs <-chan *pb.ActivatedJob) {
	for j := range jobs {
		var in input
		if err := json.Unmarshal([]byte(j.Variables), &in); err != nil {
			log.Fatal(err)
		}
		out, code := decide(in)
		variables, err := json.Marshal(out)
		if err != nil {
			log.Fatal(err)
		}
		if err := answer(ctx, gateway, j, code, string(variables)); err != nil && ctx.Err() == nil {
			log.Fatal(err)
		}
	}
}

func answer(ctx context.Context, gateway pb.GatewayClient, j *pb.ActivatedJob, code, variables string) error {
	if code == "" {
		_, err := gateway.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key, Variables: variables})
		return err
	}
	_, err := gateway.SetVariables(ctx, &pb.SetVariablesRequest{ElementInstanceKey: j.ElementInstanceKey, Variables: variables})
	if err == nil {
		_, err = gateway.ThrowError(ctx, &pb.ThrowErrorRequest{JobKey: j.Key, ErrorCode: code, Variables: variables})
	}
	return err
}

func decide(in input) (output, string) {
	out := output{RetryCount: in.RetryCount, MaxRetries: 5, OriginalError: in.SubmissionError, RetryPolicy: "tiss-submission"}
	text := strings.ToUpper(in.SubmissionError)
	switch {
	case in.RetryCount >= out.MaxRetries:
		return out, "MAX_RETRIES_EXCEEDED"
	case contains(text, permanent):
		out.ErrorClassification = "PERMANENT"
		return out, "PERMANENT_ERROR"
	case contains(text, transient):
		out.ErrorClassification = "TRANSIENT"
	default:
		out.ErrorClassification = "UNKNOWN"
	}
	minutes := min(5<<in.RetryCount, 240)
	out.BackoffMinutes = max(int(float64(minutes)*(0.8+0.4*rand.Float64())), 5)
	out.ShouldRetry = true
	out.RetryCount++
	out.RetryReason = fmt.Sprintf("Transient error, retry %d of %d", out.RetryCount, out.MaxRetries)
	out.BackoffDuration = fmt.Sprintf("PT%dM", out.BackoffMinutes)
	out.NextRetryTime = time.Now().UTC().Truncate(time.Second).Add(time.Duration(out.BackoffMinutes) * time.Minute)
	return out, ""
}

func contains(text string, codes []string) bool {
	for _, code := range codes {
		if strings.Contains(text, code) {
			return true
		}
	}
	return false
}
